"""The time zone of a test."""

import time
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def set_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the time zone of this process until the test ends."""
    if not hasattr(time, "tzset"):
        pytest.skip("the time zone cannot be set here")

    def change(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()
