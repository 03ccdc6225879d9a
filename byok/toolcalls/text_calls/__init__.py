"""Tool calls that a host left in the text of an answer, read by family of models."""
