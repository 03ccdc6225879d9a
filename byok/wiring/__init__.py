"""Settings become everything that runs."""
