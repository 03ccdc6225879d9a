"""Checks of a set-up: what is wrong with it, and what cures it; nothing is changed."""
