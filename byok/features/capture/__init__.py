"""Captured requests: what passed on their four hops, redacted, in files for a day."""
