"""Caps: limits on requests and spending per day and per conversation."""
