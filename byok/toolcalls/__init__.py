"""Fragments become whole, honest tool calls."""
