"""Small coding tasks that models are tried out with, through the daemon's real path."""
