"""Asking byok from another process of the same user."""
