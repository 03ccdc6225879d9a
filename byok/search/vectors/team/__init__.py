"""Vectors that the members of a team share, on a Qdrant or PostgreSQL server of theirs.

What members need is in `team_index.py`; the rest is how it speaks to the server.
"""
