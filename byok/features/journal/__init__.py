"""The journal of requests: one thread writes it; commands, page and caps read it."""
