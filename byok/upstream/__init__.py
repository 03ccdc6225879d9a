"""The model APIs that byok talks to."""
