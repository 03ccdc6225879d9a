"""Loops of an agent: equal tool calls again and again, and turns without end."""
