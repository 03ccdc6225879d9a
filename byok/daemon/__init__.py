"""What makes one process the daemon of its user: its files, token, proof and log."""
