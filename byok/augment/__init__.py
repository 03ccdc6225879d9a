"""The client's protocol: bodies in, chunks out."""
