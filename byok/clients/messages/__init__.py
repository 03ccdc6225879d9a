"""Anthropic's Messages, as clients speak it."""
