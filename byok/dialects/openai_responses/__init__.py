"""OpenAI Responses, and the APIs that are compatible with it."""
