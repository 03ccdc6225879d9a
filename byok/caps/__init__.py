"""Caps: how much may be asked and spent in a day and in a conversation."""
