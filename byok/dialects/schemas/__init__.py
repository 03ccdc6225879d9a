"""JSON Schemas of tools, rewritten for upstreams that accept only part of them."""
