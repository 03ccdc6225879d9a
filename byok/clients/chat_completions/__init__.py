"""OpenAI's Chat Completions, as clients speak it."""
