"""Blobs, workspaces and the index over them: files and SQLite, no HTTP."""
