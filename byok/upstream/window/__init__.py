"""Fit a long conversation into a model's context window; pure."""
