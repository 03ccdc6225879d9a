"""Checks of a setup: what is wrong with it, and how to fix it; nothing is changed."""
