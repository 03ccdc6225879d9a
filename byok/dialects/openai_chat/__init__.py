"""OpenAI Chat Completions, and the APIs that are compatible with it."""
