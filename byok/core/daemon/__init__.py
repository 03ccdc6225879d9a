"""The identity of the daemon: one process per user, its files, token, proof and log."""
