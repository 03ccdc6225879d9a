"""Loops of an agent: the same tool call again and again, and turns that do not end."""
