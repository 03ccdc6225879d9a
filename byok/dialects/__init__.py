"""Upstream wire protocols: requests, answers, errors."""
