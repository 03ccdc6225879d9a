"""Observers: each is told of every request, and none can break one."""

import pytest

from byok.core.record import Head, Hop, Observers, RequestRecord, Tap


class Watcher:
    """Observer that keeps what it is told, and fails where it is told to."""

    def __init__(
        self, *, wants_bytes: bool = True, fails: frozenset[str] = frozenset()
    ) -> None:
        self.seen: list[object] = []
        self._wants_bytes = wants_bytes
        self._fails = fails

    def request_started(self, record: RequestRecord, /) -> Tap | None:
        self._note("start", record.request_id)
        return self._tap if self._wants_bytes else None

    def request_finished(self, record: RequestRecord, /) -> None:
        self._note("finish", record.request_id)

    def _tap(self, hop: Hop, piece: bytes | Head, /) -> None:
        self._note("tap", (hop, piece))

    def _note(self, what: str, value: object) -> None:
        self.seen.append(value)
        if what in self._fails:
            raise ValueError(what)


def observe(*watchers: Watcher) -> RequestRecord:
    """Let a request with one piece of bytes be observed."""
    observers, record = Observers(watchers), RequestRecord("r")
    observers.start(record)
    if record.tap is not None:
        record.tap(Hop.TO_CLIENT, b"x")
        record.tap(Hop.TO_CLIENT, b"y")
    observers.finish(record)
    return record


def test_an_observer_sees_start_bytes_and_end() -> None:
    one, two = Watcher(), Watcher(wants_bytes=False)
    record = observe(one, two)
    assert one.seen == ["r", (Hop.TO_CLIENT, b"x"), (Hop.TO_CLIENT, b"y"), "r"]
    assert two.seen == ["r", "r"]
    assert record.tap is None


@pytest.mark.parametrize("where", ["start", "tap", "finish"])
def test_an_observer_that_fails_is_logged_and_hinders_no_other(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken, well = Watcher(fails=frozenset({where})), Watcher()
    observe(broken, well)
    assert len(well.seen) == 4
    assert caplog.text.count("ValueError: ") == 1
