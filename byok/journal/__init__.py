"""The journal: what became of each request, in a file; never any content."""
