"""Replay captured requests: offline with the present decoder, or with a new request.

`python -m tools.replay --help` says how; docs/reference/capture.md, what for.
"""
