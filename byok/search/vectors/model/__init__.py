"""The user's model that makes vectors: batches, waits, prefixes, prices."""
