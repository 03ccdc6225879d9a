"""The dashboard over HTTP: /ui/ and its interface."""
