"""Vectors of code: made by the user's model, stored here, searched beside the words.

Nothing here runs unless the user named an upstream for it.
"""
