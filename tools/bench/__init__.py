"""What a stream through byok costs: `scripts/bench`; docs/reference/performance.md."""
