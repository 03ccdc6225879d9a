"""The interface of observers of requests: features, and the access log.

An observer is called at the start and at the end of every request, with the record that
is filled in between. One that needs the bytes, too, returns a tap at the start; without
any tap, a network read costs only a check for None.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from byok.core.record import Head, Hop, RequestRecord, Tap

_log = logging.getLogger(__name__)


class Observer(Protocol):
    """Reads the records of requests; called on the event loop, so it must not block."""

    def request_started(self, record: RequestRecord, /) -> Tap | None:
        """Handle the start of a request; only its id, method and client are known.

        The result, if any, receives the bytes of this request.
        """
        ...

    def request_finished(self, record: RequestRecord, /) -> None:
        """Handle the end of a request; its record does not change any more."""
        ...


class Observers:
    """Calls several observers; if one fails, that is logged and changes no answer."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)

    def start(self, record: RequestRecord) -> None:
        """Call all observers at the start, and attach their taps to the record."""
        taps: list[Tap] = []
        for observer in self._observers:
            try:
                tap = observer.request_started(record)
            except Exception:
                _log.exception("an observer of requests failed")
            else:
                taps += [] if tap is None else [tap]
        if taps:
            record.tap = _Taps(taps)

    def finish(self, record: RequestRecord) -> None:
        """Remove tap and listener, and call all observers at the end."""
        record.tap = record.listener = None
        for observer in self._observers:
            try:
                observer.request_finished(record)
            except Exception:
                _log.exception("an observer of requests failed")


class _Taps:
    """Several taps as one; a tap that fails is removed."""

    def __init__(self, taps: list[Tap]) -> None:
        self._taps = taps

    def __call__(self, hop: Hop, piece: bytes | Head, /) -> None:
        for tap in [*self._taps]:
            try:
                tap(hop, piece)
            except Exception:
                self._taps.remove(tap)
                _log.exception("a tap of a request failed")
