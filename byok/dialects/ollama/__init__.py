"""Ollama's own API: chats as lines of JSON, and what its server tells of models."""
