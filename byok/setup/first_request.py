"""Wait for the first request of a client, by the journal of the daemon.

The journal is what all of byok's commands about requests read: it needs no endpoint of
its own, keeps requests that came between two looks, and names no content.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from byok.journal.entry import JournalEntry
from byok.journal.reading import LogFilter, entries_since, highest_number

_LOOK_SECONDS = 0.5
_AT_ONCE = 100
_EVERYTHING = LogFilter(everything=True)
_CLIENTS = {
    "vscode": "VS Code (extension {})",
    "intellij": "A JetBrains IDE (plugin {})",
    "cli": "The CLI {}",
    "sdk": "The SDK {}",
}


def wait_for_clients(
    journal: Path,
    after: int,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[JournalEntry]:
    """Give the requests of clients after a number, as they end; without an end.

    Raises:
        CannotStart: the journal cannot be read.
    """
    while True:
        if highest_number(journal) < after:
            after = 0  # a new file was begun
        entries = entries_since(journal, after, _AT_ONCE, _EVERYTHING)
        for stored in entries:
            after = stored.number
            yield stored.entry
        if not entries:
            pause(_LOOK_SECONDS)


def describe_client(client: str) -> str:
    """Return `vscode/0.600.1` as words for people."""
    family, _, version = client.partition("/")
    words = _CLIENTS.get(family)
    if words is None:
        return client if version else "A client"
    return words.format(version or "of an unknown version")
