"""Frames: bytes to events and back."""
