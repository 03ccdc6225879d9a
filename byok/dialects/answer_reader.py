"""What the readers of answers have in common: how an answer ends, or breaks off."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from byok.core.errors import UpstreamEmpty, UpstreamError, UpstreamGarbled
from byok.core.events import StreamEvent
from byok.core.stage import then_raise
from byok.core.wire.json_body import parse_json

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


# Which protocol an answer is in, for servers that speak another one at a URL.


CHAT_COMPLETIONS = "Chat Completions"
MESSAGES = "Anthropic's Messages API"
RESPONSES = "OpenAI's Responses API"
GEMINI = "Gemini's own API"
OLLAMA = "Ollama's own API"
_EVENTS = frozenset(
    {"message", "message_start", "content_block_start", "content_block_delta"}
)


def protocol_of(chunk: Any) -> str:
    """Return the name of the protocol that the first chunk is in, or ""."""
    if isinstance(chunk, list):  # Gemini, where no events were asked for
        chunk = chunk[0] if chunk else None
    if not isinstance(chunk, dict):
        return ""
    kind = chunk.get("type")
    kind = kind if isinstance(kind, str) else ""
    if "choices" in chunk:
        return CHAT_COMPLETIONS
    if kind in _EVENTS:
        return MESSAGES
    if kind.startswith("response.") or chunk.get("object") == "response":
        return RESPONSES
    if "candidates" in chunk:
        return GEMINI
    if "done" in chunk and ("message" in chunk or "response" in chunk):
        return OLLAMA
    return ""


def check_protocol(chunk: Any, own: str, hint: str = "") -> None:
    """Check that the first chunk of an answer is not from another protocol.

    Raises:
        UpstreamGarbled: it is; the message names the protocol.
    """
    name = protocol_of(chunk)
    if name and name != own:
        raise UpstreamGarbled(
            f"it answers in the format of {name}, not of {own}.",
            code="upstream_protocol",
            hint=hint or "Check base_url, or choose the other protocol with `dialect`.",
        )


def read_error_body(data: bytes) -> Any:
    """Return an error event as JSON, or as text where it is none."""
    try:
        return parse_json(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
