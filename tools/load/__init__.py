"""Load runs with goals: `scripts/load CASE...`; see docs/PERFORMANCE.md."""
