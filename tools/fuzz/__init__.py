"""Fuzzing: `scripts/fuzz TARGET...`; one module a target."""
