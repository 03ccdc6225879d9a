"""Anthropic's Messages API, and the APIs that are compatible with it."""
