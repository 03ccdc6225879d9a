"""Gemini's own API: `models/MODEL:streamGenerateContent`, version v1beta."""
