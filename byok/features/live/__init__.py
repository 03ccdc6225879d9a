"""Requests as they pass: the open ones, and the latest that ended."""
