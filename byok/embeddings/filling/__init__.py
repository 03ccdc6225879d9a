"""Gives every chunk a vector, in the background."""
