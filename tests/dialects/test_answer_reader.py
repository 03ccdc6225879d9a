"""An answer ends once, or breaks off with an error after all that came."""

import pytest

from byok.core.errors import (
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
)
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.dialects.answer_reader import AnswerReader

STOP = Finish(FinishReason.STOP)


class Letters(AnswerReader[str]):
    """Reads letters; `.` may end the answer, `!` ends it, `?` is no letter."""

    def __init__(self) -> None:
        super().__init__()
        self._held = ""
        self._dot = False

    def _end_if_finished(self) -> None:
        if self._dot:
            self._end()

    def _read(self, item: str) -> None:
        if item == "?":
            raise UpstreamNotJson("it is no letter.")
        self._dot = item == "."
        if item == "!":
            self._end()
        elif not self._dot:
            self._spoke = True
            self._held += item

    def _rest(self) -> None:
        if self._held:
            self._out.append(TextDelta(self._held))
            self._held = ""

    def _end(self) -> None:
        self._rest()
        self._done = True
        self._out.append(STOP)


def read(items: str) -> tuple[list[StreamEvent], type[UpstreamError] | None]:
    reader, found = Letters(), list[StreamEvent]()
    try:
        for item in items:
            found += reader.feed(item)
        for event in reader.flush():
            found.append(event)
    except UpstreamError as error:
        return found, type(error)
    return found, None


@pytest.mark.parametrize(
    ("items", "events", "error"),
    [
        ("ab!", [TextDelta("ab"), STOP], None),
        ("ab.", [TextDelta("ab"), STOP], None),
        ("ab", [TextDelta("ab")], UpstreamGarbled),
        ("", [], UpstreamEmpty),
        ("a?b", [TextDelta("a")], UpstreamNotJson),
    ],
)
def test_an_answer_ends_or_breaks_off(
    items: str, events: list[StreamEvent], error: type[UpstreamError] | None
) -> None:
    assert read(items) == (events, error)
