"""The HTTP server: requests of clients in, answers out."""
