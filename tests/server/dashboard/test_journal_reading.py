"""A journal that cannot be read is no fault of the daemon, and told with its cure."""

import threading
from pathlib import Path

import pytest

from byok.core.errors import ByokError, CannotStart, NotReady
from byok.server.dashboard.journal_api import read_journal

PATH = Path("journal.db")


async def test_the_journal_is_read_in_a_thread() -> None:
    here = threading.current_thread()
    assert await read_journal(PATH, threading.current_thread) is not here


@pytest.mark.parametrize(
    ("fault", "code", "told"),
    [
        (CannotStart("It is newer.", code="newer_data"), "newer_data", "It is newer."),
        (PermissionError(13, "Permission denied"), "not_ready", "Permission denied"),
    ],
    ids=["unreadable", "refused"],
)
async def test_it_may_be_read_later(fault: Exception, code: str, told: str) -> None:
    def fail() -> None:
        raise fault

    with pytest.raises(NotReady) as caught:
        await read_journal(PATH, fail)
    assert caught.value.code == code
    assert told in caught.value.message
    if isinstance(fault, ByokError):
        assert caught.value.hint == fault.hint
