"""Code search: the index, questions about code, and vectors beside the words."""
