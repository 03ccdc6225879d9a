"""The writing side of the journal of requests; `byok/journal/` reads it."""
