"""What a stream through byok costs: `scripts/bench`; see docs/PERFORMANCE.md."""
