"""Build everything that runs from the settings."""
