"""Endpoints that ask a model for one text: the question, and the form of the reply."""
