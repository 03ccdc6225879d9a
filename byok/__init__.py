"""Bring your own key: a local daemon between an editor and a model."""

__version__ = "0.2.0"
