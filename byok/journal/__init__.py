"""The journal: the outcome of each request, in a file; never any content."""
