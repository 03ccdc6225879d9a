"""OpenAI's Responses, as clients speak it; byok stores none."""
