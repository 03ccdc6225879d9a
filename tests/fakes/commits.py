"""Histories written down for a test."""

from byok.search.index.types import Commit, CommitHistory


def history(*commits: tuple[str, str]) -> CommitHistory:
    """Make a history of messages and files (split at spaces), the newest first."""
    return CommitHistory(
        "0" * 40,
        tuple(
            Commit(f"{n:040}", n, message, tuple(files.split()), len(files.split()))
            for n, (message, files) in enumerate(commits)
        ),
    )
