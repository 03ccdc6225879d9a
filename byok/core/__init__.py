"""The vocabulary that every room speaks, and what it stands on: formats, the system."""
