"""Formats on the wire: JSON, NDJSON, server-sent events, compression."""
