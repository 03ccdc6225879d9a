"""The HTTP face of byok."""
