"""The JSON Schemas of tools, rewritten for upstreams that take only a part of them."""
