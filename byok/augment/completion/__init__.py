"""Inline completion: what of a model's text fits at the cursor, and the answer."""
