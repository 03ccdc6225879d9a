"""Tool calls that a model printed into its text, read by their form."""
