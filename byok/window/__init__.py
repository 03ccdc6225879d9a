"""Keeping a long conversation within a model's window; pure."""
