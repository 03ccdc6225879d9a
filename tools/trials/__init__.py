"""Trials: models solve small coding tasks through the daemon, as for an editor's agent.

`python -m tools.trials --help` says how; docs/reference/prompts.md, what for.
"""
