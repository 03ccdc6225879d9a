"""OpenAI Chat Completions, and every API that imitates it."""
