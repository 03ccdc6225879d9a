"""What `byok init` finds and writes; the questions are in the command."""
