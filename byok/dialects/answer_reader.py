"""What the readers of answers share: JSON documents, endings, and think blocks."""

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
# Finish reasons of all protocols in one table, because gateways mix them.
WINDOW_EXCEEDED = "model_context_window_exceeded"  # of Anthropic and Z.ai
_REASON_WORDS = {
    FinishReason.LENGTH: f"length max_tokens max_output_tokens limit {WINDOW_EXCEEDED}",
    FinishReason.TOOL_CALLS: "tool_calls tool_use function_call",
    FinishReason.CONTENT_FILTER: "content_filter safety sensitive refusal",
}
_REASONS = {
    word: reason for reason, words in _REASON_WORDS.items() for word in words.split()
}
# Reasons of answers that are not complete.
_FAILURES = frozenset(
    {
        "error",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "timeout",
        "network_error",
        "insufficient_system_resource",  # DeepSeek
        "malformed_function_call",  # this and the next three: Gemini
        "unexpected_tool_call",
        "too_many_tool_calls",
        "missing_thought_signature",
    }
)
_DONE = b"[DONE]"
_PROTOCOLS = {
    OPENAI_CHAT: "Chat Completions",
    ANTHROPIC: "Anthropic's Messages API",
    OPENAI_RESPONSES: "OpenAI's Responses API",
    GEMINI: "Gemini's own API",
    OLLAMA: "Ollama's own API",
}
_ANTHROPIC_EVENTS = frozenset(
    {"message", "message_start", "content_block_start", "content_block_delta"}
)
_MAX_BLANK_CHARS = 1024  # white space that may precede an opening tag
_TAG_PAIRS = (
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("◁think▷", "◁/think▷"),  # Kimi's SGLang builds
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<thought>", "</thought>"),  # Gemini's thoughts in its OpenAI-compatible API
)
_ALL_TAGS = tuple(tag for pair in _TAG_PAIRS for tag in pair)
_FIRST_CHARS = {tag[0] for tag in _ALL_TAGS}
_DATA_FIELD = "tags"


class AnswerReader(ABC, Generic[Item]):
    """A Stage[Item, StreamEvent] for one answer, whose protocol a subclass decodes.

    `dialect` is the name of the protocol's dialect. `_events` collects events,
    `_has_begun` is set when a part of an answer has come, and `_done` when its Finish
    was emitted. `_finish` and `_fills_window` are those of this Finish, once a part of
    the answer told them. `_think` reads the think blocks that some servers leave in the
    text.
    """

    dialect: ClassVar[str]

    def __init__(
        self, tool_names: Mapping[str, str] = NO_NAMES, origin: Origin = NO_ORIGIN
    ) -> None:
        self._tool_names = tool_names
        self._origin = origin
        self._events: list[StreamEvent] = []
        self._has_begun = False
        self._done = False
        self._finish: FinishReason | None = None
        self._fills_window = False
        self._text = SurrogateBuffer()
        self._think: ThinkTags | None = ThinkTags(origin)  # None: none can follow

    def feed(self, item: Item, /) -> Iterable[StreamEvent]:
        """Decode one item; events before a failure are emitted first."""
        try:
            self._read(item)
        except UpstreamError as error:
            self._flush_parts()
            return then_raise(self._take_events(), error)
        events, self._events = self._events, []
        return events

    def flush(self) -> Iterator[StreamEvent]:
        """End the answer; raise an error if it was cut off before its end."""
        if self._done:
            return
        self._end_if_finished()
        if not self._done:
            self._flush_parts()
        yield from self._take_events()
        if not self._done:
            raise missing_end(has_begun=self._has_begun)

    @abstractmethod
    def _read(self, item: Item) -> None:
        """Decode one item into `_events`."""

    def _read_json(self, document: Any) -> None:
        """Decode a JSON value: one document, or an array of several."""
        if not self._has_begun:
            check_protocol(document, self.dialect)
        for item in document if isinstance(document, list) else (document,):
            if not isinstance(item, dict):
                raise UpstreamNotJson("a part of its answer is not a JSON object.")
            self._read_document(item)

    @abstractmethod
    def _read_document(self, document: dict[str, Any]) -> None:
        """Decode one object of the protocol into `_events`."""

    @abstractmethod
    def _flush_parts(self) -> None:
        """Emit the parts that are still buffered."""

    def _end_if_finished(self) -> None:
        """End the answer if only the last mark of the protocol is missing."""
        if self._finish is not None:
            self._end()

    def _end(self) -> None:
        """End the answer after its last part."""
        self._emit_end(None)

    def _emit_end(self, usage: Usage | None) -> None:
        """Emit the parts that are still buffered, then the usage and the Finish."""
        self._done = True
        self._flush_parts()
        if usage:
            self._events.append(usage)
        reason = self._finish or FinishReason.STOP
        self._events.append(Finish(reason, fills_window=self._fills_window))

    def _emit_text(self, text: str) -> None:
        """Emit a text, or the reasoning in it."""
        if self._think is None:
            self._events.append(TextDelta(text))
            return
        self._events.extend(self._think.feed(TextDelta(text)))
        if self._think.over:
            self._think = None

    def _emit_partial_tag(self) -> None:
        """Emit text that was buffered because it could have become a tag."""
        if self._think is not None:
            self._events.extend(self._think.flush())

    def _take_events(self) -> list[StreamEvent]:
        events, self._events = self._events, []
        return events


def missing_end(*, has_begun: bool) -> UpstreamError:
    """Return the error for an answer that ended too early.

    `has_begun`: a part of it had come.
    """
    if not has_begun:
        return UpstreamEmpty("its answer was empty.", retryable=True)
    return UpstreamGarbled(
        "its answer broke off before the end.", code="upstream_cut", retryable=True
    )


class EventReader(AnswerReader[ServerSentEvent]):
    """A reader of the JSON documents in server-sent events."""

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
        if self._has_begun and type(document) is dict:  # as nearly always
            self._read_document(document)
        else:
            self._read_json(document)

    def _read_lines(self, sse: ServerSentEvent, error: Exception) -> None:
        """Read an event that is not one document: a mark, an error, or several.

        There are several documents if the server omits the blank lines between events.
        """
        lines = [line for line in map(bytes.strip, sse.data.split(b"\n")) if line]
        content = [line for line in lines if line != _DONE]
        if content and sse.event == "error":
            raise refusal_of(sse.data.decode("utf-8", "replace")) from error
        try:
            documents = [parse_json(line, keep_halves=True) for line in content]
        except (ValueError, RecursionError):
            documents = []
        if content and (len(lines) < 2 or not documents):
            raise UpstreamNotJson("a part of its answer is not JSON.") from error
        for document in documents:
            self._read_json(document)
        if len(content) < len(lines):
            self._read_done_mark()

    def _read_done_mark(self) -> None:
        """Read `[DONE]`, which some gateways send in protocols that lack this mark."""


# --- Finish reasons ---


def read_finish(
    reason: str, otherwise: FinishReason = FinishReason.STOP
) -> FinishReason:
    """Return the meaning of a finish reason; `otherwise` that of unknown ones.

    Raises:
        UpstreamGarbled: the upstream failed.
    """
    if (word := reason.lower()) in _FAILURES:
        raise UpstreamGarbled(
            f"it broke off its answer ({reason}).",
            code="upstream_cut",
            hint="Try again.",
            retryable=True,
        )
    return _REASONS.get(word, otherwise)


# --- Answers in another dialect ---


def dialect_of(document: Any) -> str:
    """Return the dialect of an answer, judged by its first document, or ""."""
    if isinstance(document, list):  # Gemini, unless it streams server-sent events
        document = document[0] if document else None
    if not isinstance(document, dict):
        return ""
    kind = document.get("type")
    kind = kind if isinstance(kind, str) else ""
    if "choices" in document:
        return OPENAI_CHAT
    if kind in _ANTHROPIC_EVENTS:
        return ANTHROPIC
    if kind.startswith("response.") or document.get("object") == "response":
        return OPENAI_RESPONSES
    if "candidates" in document:
        return GEMINI
    if "done" in document and ("message" in document or "response" in document):
        return OLLAMA
    return ""


def check_protocol(document: Any, expected: str) -> None:
    """Check that the first document of an answer is not of another dialect.

    Raises:
        UpstreamGarbled: it is of another one, which the message names.
    """
    actual = dialect_of(document)
    if not actual or actual == expected:
        return
    hint = f'Set dialect = "{actual}" for this upstream.'
    if expected == OPENAI_CHAT:
        hint = (
            "Set base_url to the address of its OpenAI-compatible API, which usually "
            "ends in /v1."
        )
    names = _PROTOCOLS[actual], _PROTOCOLS[expected]
    raise UpstreamGarbled(
        f"it answers in the format of {names[0]}, not of {names[1]}.",
        code="upstream_protocol",
        hint=hint,
    )


# --- Think blocks ---


def tags_of(data: Json) -> tuple[str, str] | None:
    """Return the opening and the closing tag from a block's data, or None."""
    match data.get(_DATA_FIELD):
        case [str(opening), str(closing)] if (
            opening.strip(),
            closing.strip(),
        ) in _TAG_PAIRS:
            return opening, closing
        case _:
            return None


class ThinkTags:
    """A Stage[StreamEvent, StreamEvent]: a leading think block becomes ThinkingDelta.

    Some servers remove the reasoning but not its closing tag, so a closing tag at the
    start of an answer is removed. Models that need their reasoning back need it between
    the same tags. So the block ends with the tags as its data, with the white space
    around them: `{"tags": [OPENING, CLOSING]}`.
    """

    def __init__(self, origin: Origin = NO_ORIGIN) -> None:
        self._origin = origin
        self._buffer: str | None = ""  # None: the block has ended, or there is none
        self._opener = ""
        self._newlines = 0  # after the closing tag
        self._has_thoughts = False  # some reasoning was emitted
        self._closer = ""
        self._is_closed = False  # the block has ended, and no text has followed yet

    @property
    def over(self) -> bool:
        """Whether all further text passes unchanged."""
        return self._buffer is None and not self._is_closed

    def feed(self, event: StreamEvent, /) -> Iterator[StreamEvent]:
        """Pass events on, except text that may belong to the block."""
        if isinstance(event, Finish):
            yield from self.flush()
        if self._is_closed and isinstance(event, TextDelta):
            yield from self._read_after_block(event.text)
        elif self._buffer is None or not isinstance(event, TextDelta):
            yield event
        elif self._closer:
            yield from self._read_in_block(self._buffer + event.text)
        else:
            yield from self._read_before_block(self._buffer + event.text)

    def flush(self) -> Iterator[StreamEvent]:
        """Emit the buffered text; an unclosed block is reasoning, too."""
        text, self._buffer = self._buffer, None
        if text:
            yield ThinkingDelta(text) if self._closer else TextDelta(text)
        yield from self.end()

    def end(self) -> Iterator[StreamEvent]:
        """Emit the data of a closed block, before a tool call that follows it."""
        if self._is_closed:
            yield from self._emit_tags()

    def _read_before_block(self, text: str) -> Iterator[StreamEvent]:
        start = text.lstrip()
        if start and start[0] not in _FIRST_CHARS:  # as nearly always
            self._buffer = None
            yield TextDelta(text)
            return
        for opener, closer in _TAG_PAIRS:
            if start.startswith((opener, closer)):
                self._closer = closer
                self._opener = text[: len(text) - len(start)] + opener
                yield from self._read_in_block(start.removeprefix(opener))
                return
        is_short = len(text) <= _MAX_BLANK_CHARS
        if is_short and any(tag.startswith(start) for tag in _ALL_TAGS):
            self._buffer = text  # it may become a tag, or is blank so far
            return
        self._buffer = None
        yield TextDelta(text)

    def _read_in_block(self, text: str) -> Iterator[StreamEvent]:
        thought, closer, tail = text.partition(self._closer)
        if closer:
            self._buffer, self._is_closed = None, True
            if thought:
                self._has_thoughts = True
                yield ThinkingDelta(thought)
            yield from self._read_after_block(tail)
            return
        partial = next(  # length of the closing tag's beginning at the end of the text
            n for n in range(len(self._closer), -1, -1)
            if text.endswith(self._closer[:n])
        )  # fmt: skip
        cut = len(text) - partial
        self._buffer = text[cut:]
        if cut:
            self._has_thoughts = True
            yield ThinkingDelta(text[:cut])

    def _read_after_block(self, text: str) -> Iterator[StreamEvent]:
        content = text.lstrip("\n")
        self._newlines += len(text) - len(content)
        if content:
            yield from self._emit_tags()
            yield TextDelta(content)

    def _emit_tags(self) -> Iterator[StreamEvent]:
        """Emit the data of the block, once the newlines after it are counted."""
        self._is_closed = False
        if self._has_thoughts:
            tags = [self._opener, self._closer + "\n" * self._newlines]
            yield ThinkingDelta("", ProviderData(self._origin, {_DATA_FIELD: tags}))
