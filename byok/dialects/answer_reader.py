"""What the readers of answers have in common: how an answer ends, or breaks off."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from byok.errors import UpstreamEmpty, UpstreamError, UpstreamGarbled
from byok.events import StreamEvent
from byok.stage import then_raise

Item = TypeVar("Item")


class AnswerReader(ABC, Generic[Item]):
    """Stage[Item, StreamEvent] without its protocol: a subclass has `_read`.

    `_out` collects events, `_spoke` is set when something of an answer has come, and
    `_done` when its Finish was given.
    """

    def __init__(self) -> None:
        self._out: list[StreamEvent] = []
        self._spoke = False
        self._done = False

    def feed(self, item: Item, /) -> Iterable[StreamEvent]:
        """Decode one item; text before a failure is given first."""
        try:
            self._read(item)
        except UpstreamError as error:
            self._rest()
            return then_raise(self._take_events(), error)
        out, self._out = self._out, []
        return out

    def flush(self) -> Iterator[StreamEvent]:
        """End the answer; one whose end did not come was cut off."""
        if self._done:
            return
        self._end_if_finished()
        if not self._done:
            self._rest()
        yield from self._take_events()
        if not self._done:
            raise missing_end(spoke=self._spoke)

    @abstractmethod
    def _read(self, item: Item) -> None:
        """Decode one item into `_out`."""

    @abstractmethod
    def _rest(self) -> None:
        """Give what was held back of an answer that breaks off here."""

    def _end_if_finished(self) -> None:
        """End the answer if all has come but for the last mark of the protocol."""
        return

    def _take_events(self) -> list[StreamEvent]:
        out, self._out = self._out, []
        return out


def missing_end(*, spoke: bool) -> UpstreamError:
    """Return the error for an answer without its end; `spoke`: something came."""
    if not spoke:
        return UpstreamEmpty("its answer was empty.", retryable=True)
    return UpstreamGarbled(
        "its answer broke off before the end.", code="upstream_cut", retryable=True
    )
