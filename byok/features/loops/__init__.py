"""Loops of agents: when a model is told so, and when its turn is ended."""
