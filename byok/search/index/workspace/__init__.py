"""Folders on disk, kept in step with the index."""
