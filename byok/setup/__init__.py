"""What `byok init` finds out and writes; the questions are in the command."""
