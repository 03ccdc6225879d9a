"""Requests to servers of others: with consent, bounded, paused after failures."""
