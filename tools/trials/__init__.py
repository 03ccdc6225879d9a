"""Small coding tasks that models are tried out with, through the daemon's real path.

`python -m tools.trials --help` says how; docs/reference/prompts.md, what for.
"""
