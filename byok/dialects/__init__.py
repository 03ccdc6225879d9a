"""Dialects: the wire protocols of model APIs, without any I/O."""
