"""Captured requests once more: offline against today's decoder, or asked anew.

`python -m tools.replay --help` says how; docs/reference/capture.md, what for.
"""
