"""A search server that the user's organisation runs, asked beside the local index.

`remote_search.py` is what retrieval asks; `zoekt.py` speaks to one kind of server.
"""
