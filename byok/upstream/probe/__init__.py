"""Trying out what a model takes and does, with a few small requests."""
