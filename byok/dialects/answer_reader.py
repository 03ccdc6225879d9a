"""What the readers of answers have in common: their documents, and how they end."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from byok.core.chat import NO_ORIGIN, Json, Origin, ProviderData
from byok.core.errors import (
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
)
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.core.stage import then_raise
from byok.core.wire.json_body import SurrogateBuffer, parse_json
from byok.core.wire.sse import ServerSentEvent
from byok.dialects.error_bodies import refusal_of
from byok.dialects.presets import (
    ANTHROPIC,
    GEMINI,
    OLLAMA,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)

Item = TypeVar("Item")
NO_NAMES: Mapping[str, str] = {}


class AnswerReader(ABC, Generic[Item]):
    """Stage[Item, StreamEvent] without its protocol, which a subclass reads.

    `dialect` is the name of that protocol's. `_out` collects events, `_spoke` is set
    when something of an answer has come, and `_done` when its Finish was given. Some
    servers leave a think block in the text.
    """

    dialect: ClassVar[str]

    def __init__(
        self, tool_names: Mapping[str, str] = NO_NAMES, origin: Origin = NO_ORIGIN
    ) -> None:
        self._tool_names = tool_names
        self._origin = origin
        self._out: list[StreamEvent] = []
        self._spoke = False
        self._done = False
        self._text = SurrogateBuffer()
        self._think: ThinkTags | None = ThinkTags(origin)  # None once that is over

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

    def _take(self, document: Any) -> None:
        """Decode a document of JSON, which may be an array of several."""
        if not self._spoke:
            check_protocol(document, self.dialect)
        for one in document if isinstance(document, list) else (document,):
            if not isinstance(one, dict):
                raise UpstreamNotJson("a part of its answer is not a JSON object.")
            self._read_document(one)

    @abstractmethod
    def _read_document(self, document: dict[str, Any]) -> None:
        """Decode one object of the protocol into `_out`."""

    @abstractmethod
    def _rest(self) -> None:
        """Give what was held back of an answer that breaks off here."""

    def _end_if_finished(self) -> None:
        """End the answer if all has come but for the last mark of the protocol."""
        return

    def _give_end(
        self, reason: FinishReason, usage: Usage | None, *, fills_window: bool = False
    ) -> None:
        """Give what was held back, and the last events of an answer."""
        self._done = True
        self._rest()
        if usage:
            self._out.append(usage)
        self._out.append(Finish(reason, fills_window=fills_window))

    def _give_text(self, text: str) -> None:
        """Give a text, or the reasoning in it."""
        if self._think is None:
            self._out.append(TextDelta(text))
            return
        self._out.extend(self._think.feed(TextDelta(text)))
        if self._think.over:
            self._think = None

    def _give_held_tag(self) -> None:
        """Give what may have been a tag, and ends here."""
        if self._think is not None:
            self._out.extend(self._think.flush())

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


class EventReader(AnswerReader[ServerSentEvent]):
    """Reads the documents in server-sent events."""

    def _read(self, sse: ServerSentEvent) -> None:
        if self._done:
            return
        try:
            document = parse_json(sse.data, keep_halves=True)
        except (ValueError, RecursionError) as error:
            self._read_lines(sse, error)
            return
        if sse.event == "error":
            raise refusal_of(document)
        if self._spoke and type(document) is dict:  # as nearly always
            self._read_document(document)
        else:
            self._take(document)

    def _read_lines(self, sse: ServerSentEvent, error: Exception) -> None:
        """Read an event that is no document: a mark, words, or several documents.

        Between several, the blank lines are missing.
        """
        lines = [line for line in map(bytes.strip, sse.data.split(b"\n")) if line]
        written = [line for line in lines if line != _DONE]
        if written and sse.event == "error":
            raise refusal_of(sse.data.decode("utf-8", "replace")) from error
        try:
            found = [parse_json(line, keep_halves=True) for line in written]
        except (ValueError, RecursionError):
            found = []
        if written and (len(lines) < 2 or not found):
            raise UpstreamNotJson("a part of its answer is not JSON.") from error
        for document in found:
            self._take(document)
        if len(written) < len(lines):
            self._read_mark()

    def _read_mark(self) -> None:
        """Read `[DONE]`, which gateways also send where a protocol has no such mark."""


# Why an answer ended, in the words of all protocols: gateways mix them.


WINDOW_EXCEEDED = "model_context_window_exceeded"  # of Anthropic and Z.ai
_REASONS = {
    FinishReason.LENGTH: f"length max_tokens max_output_tokens limit {WINDOW_EXCEEDED}",
    FinishReason.TOOL_CALLS: "tool_calls tool_use function_call",
    FinishReason.CONTENT_FILTER: "content_filter safety sensitive refusal",
}
_FINISH = {word: reason for reason, words in _REASONS.items() for word in words.split()}
# Of answers that are not complete.
_BROKEN = frozenset(
    {
        "error",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "timeout",
        "network_error",
        "insufficient_system_resource",  # DeepSeek
        "malformed_function_call",  # Gemini, and the next three
        "unexpected_tool_call",
        "too_many_tool_calls",
        "missing_thought_signature",
    }
)


def read_finish(
    reason: str, otherwise: FinishReason = FinishReason.STOP
) -> FinishReason:
    """Return what a finish reason means; `otherwise` is that of unknown ones.

    Raises:
        UpstreamGarbled: the upstream failed.
    """
    if (word := reason.lower()) in _BROKEN:
        raise UpstreamGarbled(
            f"it broke off its answer ({reason}).",
            code="upstream_cut",
            hint="Try again.",
            retryable=True,
        )
    return _FINISH.get(word, otherwise)


# Which protocol an answer is in, for servers that speak another one at a URL.


_DONE = b"[DONE]"
_NAMES = {
    OPENAI_CHAT: "Chat Completions",
    ANTHROPIC: "Anthropic's Messages API",
    OPENAI_RESPONSES: "OpenAI's Responses API",
    GEMINI: "Gemini's own API",
    OLLAMA: "Ollama's own API",
}
_EVENTS = frozenset(
    {"message", "message_start", "content_block_start", "content_block_delta"}
)


def dialect_of(document: Any) -> str:
    """Return the dialect that the first document of an answer is in, or ""."""
    if isinstance(document, list):  # Gemini, where no events were asked for
        document = document[0] if document else None
    if not isinstance(document, dict):
        return ""
    kind = document.get("type")
    kind = kind if isinstance(kind, str) else ""
    if "choices" in document:
        return OPENAI_CHAT
    if kind in _EVENTS:
        return ANTHROPIC
    if kind.startswith("response.") or document.get("object") == "response":
        return OPENAI_RESPONSES
    if "candidates" in document:
        return GEMINI
    if "done" in document and ("message" in document or "response" in document):
        return OLLAMA
    return ""


def check_protocol(document: Any, own: str) -> None:
    """Check that the first document of an answer is not from another protocol.

    Raises:
        UpstreamGarbled: it is; the message names the protocol.
    """
    found = dialect_of(document)
    if not found or found == own:
        return
    hint = f'Set dialect = "{found}" for this upstream.'
    if own == OPENAI_CHAT:
        hint = (
            "Set base_url to the address of its OpenAI-compatible API, which usually "
            "ends in /v1."
        )
    raise UpstreamGarbled(
        f"it answers in the format of {_NAMES[found]}, not of {_NAMES[own]}.",
        code="upstream_protocol",
        hint=hint,
    )


# Reasoning between think tags at the start of an answer's text, made into thoughts.
#
# Some servers remove the reasoning but not its closing tag. A closing tag at the start
# of an answer is removed. Models that want their reasoning back want it between the
# same tags, so the block ends with these as its data: `{"tags": [OPENING, CLOSING]}`,
# with the white space around them.


_MOST_BLANK = 1024
_PAIRS = (
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("◁think▷", "◁/think▷"),  # Kimi's SGLang builds
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<thought>", "</thought>"),  # Gemini's thoughts in its OpenAI-compatible API
)
_MARKS = tuple(mark for pair in _PAIRS for mark in pair)
_FIRST = {mark[0] for mark in _MARKS}
_TAGS = "tags"


def tags_of(data: Json) -> tuple[str, str] | None:
    """Read the tags from the data of a block; None where there are none."""
    match data.get(_TAGS):
        case [str(opening), str(closing)] if (
            opening.strip(),
            closing.strip(),
        ) in _PAIRS:
            return opening, closing
        case _:
            return None


class ThinkTags:
    """Stage[StreamEvent, StreamEvent]: a leading think block becomes ThinkingDelta."""

    def __init__(self, origin: Origin = NO_ORIGIN) -> None:
        self._origin = origin
        self._held: str | None = ""  # None once the block is over, or there is none
        self._opener = ""
        self._breaks = 0  # after the closing tag
        self._thought = False  # some reasoning was given
        self._closer = ""
        self._closed = False  # the block is over, and no text came since

    @property
    def over(self) -> bool:
        """Whether all further text passes unchanged."""
        return self._held is None and not self._closed

    def feed(self, event: StreamEvent, /) -> Iterator[StreamEvent]:
        """Pass events on, except text that may belong to the block."""
        if isinstance(event, Finish):
            yield from self.flush()
        if self._closed and isinstance(event, TextDelta):
            yield from self._after(event.text)
        elif self._held is None or not isinstance(event, TextDelta):
            yield event
        elif self._closer:
            yield from self._inside(self._held + event.text)
        else:
            yield from self._before(self._held + event.text)

    def flush(self) -> Iterator[StreamEvent]:
        """Give the text that was held; an unclosed block is reasoning, too."""
        held, self._held = self._held, None
        if held:
            yield ThinkingDelta(held) if self._closer else TextDelta(held)
        yield from self.end()

    def end(self) -> Iterator[StreamEvent]:
        """End a block that was closed, before a tool call that follows it."""
        if self._closed:
            yield from self._end()

    def _before(self, text: str) -> Iterator[StreamEvent]:
        start = text.lstrip()
        if start and start[0] not in _FIRST:  # as nearly always
            self._held = None
            yield TextDelta(text)
            return
        for opener, closer in _PAIRS:
            if start.startswith((opener, closer)):
                self._closer = closer
                self._opener = text[: len(text) - len(start)] + opener
                yield from self._inside(start.removeprefix(opener))
                return
        if len(text) <= _MOST_BLANK and any(m.startswith(start) for m in _MARKS):
            self._held = text  # not enough to tell, and also for ""
            return
        self._held = None
        yield TextDelta(text)

    def _inside(self, text: str) -> Iterator[StreamEvent]:
        thought, closer, rest = text.partition(self._closer)
        if closer:
            self._held, self._closed = None, True
            if thought:
                self._thought = True
                yield ThinkingDelta(thought)
            yield from self._after(rest)
            return
        keep = next(
            n for n in range(len(closer) or len(self._closer), -1, -1)
            if text.endswith(self._closer[:n])
        )  # fmt: skip
        cut = len(text) - keep
        self._held = text[cut:]
        if cut:
            self._thought = True
            yield ThinkingDelta(text[:cut])

    def _after(self, text: str) -> Iterator[StreamEvent]:
        said = text.lstrip("\n")
        self._breaks += len(text) - len(said)
        if said:
            yield from self._end()
            yield TextDelta(said)

    def _end(self) -> Iterator[StreamEvent]:
        """Give the data of the block, once it is known what follows its tags."""
        self._closed = False
        if self._thought:
            tags = [self._opener, self._closer + "\n" * self._breaks]
            yield ThinkingDelta("", ProviderData(self._origin, {_TAGS: tags}))
