"""The interface of all that hears of every request: features, and the access log.

An observer is told of the start and the end of every request, with the record that is
filled in between. One that wants the bytes too returns a tap at the start; without any
tap, a check for None is all that a network read costs.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from byok.core.record import Head, Hop, RequestRecord, Tap

_log = logging.getLogger(__name__)


class Observer(Protocol):
    """Reads the records of requests; called on the event loop, so it must not block."""

    def request_started(self, record: RequestRecord, /) -> Tap | None:
        """Take note of a request; only its id, method and client are known yet.

        What is returned receives the bytes of this request.
        """
        ...

    def request_finished(self, record: RequestRecord, /) -> None:
        """Take note of the end; the record changes no more."""
        ...


class Observers:
    """Several observers as one. A failure of one is logged and changes no answer."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)

    def start(self, record: RequestRecord) -> None:
        """Tell all of a request, and attach their taps to its record."""
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
        """Tell all of the end of a request."""
        record.tap = record.listener = None
        for observer in self._observers:
            try:
                observer.request_finished(record)
            except Exception:
                _log.exception("an observer of requests failed")


class _Taps:
    """Several taps as one; a tap that fails is taken off."""

    def __init__(self, taps: list[Tap]) -> None:
        self._taps = taps

    def __call__(self, hop: Hop, piece: bytes | Head, /) -> None:
        for tap in [*self._taps]:
            try:
                tap(hop, piece)
            except Exception:
                self._taps.remove(tap)
                _log.exception("a tap of a request failed")
