"""A search server that the user's organisation runs, asked beside the local index.

`remote_search.py` is the entry point for retrieval; `zoekt.py` talks to a Zoekt server.
"""
