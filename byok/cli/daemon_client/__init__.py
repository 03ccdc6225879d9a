"""Access to the daemon from other processes of the same user."""
