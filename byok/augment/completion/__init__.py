"""Inline completion: the part of a model's text that fits at the cursor."""
