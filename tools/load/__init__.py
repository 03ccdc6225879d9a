"""Load runs with goals: `scripts/load CASE...`; see docs/reference/performance.md."""
