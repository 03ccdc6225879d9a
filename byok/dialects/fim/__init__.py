"""Fill-in-the-middle: the APIs that complete code at a cursor."""
