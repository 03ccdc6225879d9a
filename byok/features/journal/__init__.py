"""The writing side of the journal of requests; `byok/features/journal/` reads it."""
