"""Metrics of the daemon for Prometheus: numbers, never any content."""
