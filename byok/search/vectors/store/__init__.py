"""Vectors on the disk: rows in SQLite, and files of numbers that are scanned."""
