"""The common part of all replies: events become blocks that open, grow and close.

An answer is a sequence of blocks: reasoning, text, tool calls. Calls come last, because
byok passes them on when they are complete. White space alone is never a block, because
Anthropic refuses such a block when it is sent back.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, ClassVar, assert_never

from msgspec import Struct

from byok.core.chat import ChatRequest, Json, ProviderData, ToolCall
from byok.core.errors import ByokError, UpstreamGarbled
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
    Usage,
)
from byok.core.wire.sse import COMMENT
from byok.protocols.v1.fields import flag


def forget(_: str, __: Any) -> None:
    """Store nothing of an answer."""


class ReplyHead(Struct, frozen=True):
    """The id and the model of an answer, and its time in seconds since 1970.

    `keep` stores a value by name, if the client may refer to it later.
    """

    id: str
    model: str
    created: int = 0
    keep: Callable[[str, Any], None] = forget


class _Open(Enum):
    NOTHING = 0
    THINKING = 1
    TEXT = 2


class BlockReply(ABC):
    """A Stage[StreamEvent, Json] that finds the blocks; a subclass writes them."""

    keeps_part: ClassVar[bool] = True
    first: ClassVar[Json | None] = None
    heartbeat: ClassVar[Json | None] = COMMENT

    def __init__(self, head: ReplyHead) -> None:
        self.head = head
        self.usage: Usage | None = None
        self.finish = FinishReason.STOP
        self.calls = 0
        self.sources: dict[str, str] = {}
        self._failure: Notice | None = None
        self._begun = False
        self._open = _Open.NOTHING
        self._pieces: list[str] = []  # of the open block
        self._blank: list[str] = []  # white space that may precede a text

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Write the lines of one event."""
        match event:
            case TextDelta(text=text):
                if self._open is _Open.TEXT:
                    self._pieces.append(text)
                    return (self._write_text(text),)
                return self._begin_text(text)
            case ThinkingDelta():
                return [*self._add_thinking(event)]
            case ToolCall():
                lines = [*self._begin(), *self._close(), *self._write_call(event)]
                self.calls += 1
                return lines
            case Notice(is_restart=True) if self._open is _Open.THINKING:
                return self._close()
            case _:
                self._store(event)
        return ()

    def flush(self) -> list[Json]:
        """Write the end of a complete answer.

        Raises:
            UpstreamGarbled: a call was dropped, so the answer is incomplete.
        """
        if self._failure is not None and self.finish is not FinishReason.LENGTH:
            raise UpstreamGarbled(self._failure.text, code=self._failure.code)
        if self.calls and self.finish is FinishReason.STOP:
            self.finish = FinishReason.TOOL_CALLS
        if not self.calls and self.finish is FinishReason.TOOL_CALLS:
            self.finish = FinishReason.STOP
        return [*self._begin(), *self._close(), *self._write_end()]

    def forget_thoughts(self) -> None:
        """Drop the open block of reasoning; for replies that were not sent yet."""
        if self._open is _Open.THINKING:
            self._open, self._pieces = _Open.NOTHING, []

    def fail(self, error: ByokError) -> Iterable[Json]:
        """Write the end of an answer that failed; its open block stays open."""
        return [*self._begin(), *self._write_failure(error)]

    def _store(
        self, event: Usage | Finish | Notice | Citation | ToolCallDelta | ToolCallPlace
    ) -> None:
        match event:
            case Usage():
                self.usage = event
            case Finish(reason=reason):
                self.finish = reason
            case Notice(code=code):
                if code and self._failure is None:
                    self._failure = event
            case Citation(url=url, title=title):
                if title or url not in self.sources:
                    self.sources[url] = title
            case ToolCallDelta() | ToolCallPlace():
                pass  # complete calls follow
            case _:
                assert_never(event)

    def _begin(self) -> Iterable[Json]:
        if self._begun:
            return ()
        self._begun = True
        return self._write_beginning()

    def _begin_text(self, text: str) -> Iterable[Json]:
        self._blank.append(text)
        if not text.strip():
            return ()
        text, self._blank = "".join(self._blank), []
        lines = [*self._begin(), *self._close()]
        self._open, self._pieces = _Open.TEXT, [text]
        return [*lines, *self._open_text(), self._write_text(text)]

    def _add_thinking(self, event: ThinkingDelta) -> Iterator[Json]:
        if event.text or event.provider_data:
            yield from self._begin()
            if self._open is not _Open.THINKING:
                yield from self._close()
                self._open, self._pieces = _Open.THINKING, []
                yield from self._open_thinking()
        if event.text:
            self._pieces.append(event.text)
            yield from self._write_thinking(event.text)
        if event.provider_data:
            yield from self._close(event.provider_data)

    def _close(self, provider_data: ProviderData | None = None) -> Iterable[Json]:
        closing, self._open = self._open, _Open.NOTHING
        text, self._pieces = "".join(self._pieces), []
        match closing:
            case _Open.TEXT:
                return self._close_text(text)
            case _Open.THINKING:
                return self._close_thinking(text, provider_data)
            case _Open.NOTHING:
                return ()

    @abstractmethod
    def _write_beginning(self) -> Iterable[Json]:
        """Write the beginning, before the first block."""

    def _open_text(self) -> Iterable[Json]:
        """Open a block of text, if the protocol has an event for that."""
        return ()

    @abstractmethod
    def _write_text(self, text: str) -> Json:
        """Write a piece of the open text."""

    @abstractmethod
    def _close_text(self, text: str) -> Iterable[Json]:
        """Close a block of text; `text` is its whole text."""

    def _open_thinking(self) -> Iterable[Json]:
        """Open a block of reasoning, if the protocol has an event for that."""
        return ()

    @abstractmethod
    def _write_thinking(self, text: str) -> Iterable[Json]:
        """Write a piece of the open reasoning."""

    @abstractmethod
    def _close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterable[Json]:
        """Close a block of reasoning."""

    @abstractmethod
    def _write_call(self, call: ToolCall) -> Iterable[Json]:
        """Write a complete call; `calls` is the number of calls before it."""

    @abstractmethod
    def _write_end(self) -> Iterable[Json]:
        """Write the end, after the last block."""

    @abstractmethod
    def _write_failure(self, error: ByokError) -> Iterable[Json]:
        """Write an error instead of the end."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """Return the complete answer as one object."""


class WholeReply:
    """A Stage[StreamEvent, Json] whose flush returns the answer as one object."""

    def __init__(self, pieces: BlockReply) -> None:
        self._pieces = pieces

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect an event; after a restart, open reasoning is dropped."""
        if isinstance(event, Notice) and event.is_restart:
            self._pieces.forget_thoughts()
        self._pieces.feed(event)
        return ()

    def flush(self) -> Iterator[Json]:
        """Return the object."""
        self._pieces.flush()
        yield self._pieces.whole()

    def fail_whole(self, error: ByokError, /) -> Json:
        """Raise the error, which becomes an HTTP status."""
        raise error


class Question(Struct, frozen=True):
    """A decoded body.

    `stream`: the client wants a stream. `left_out` names features of the body that byok
    does not pass on.
    """

    chat: ChatRequest
    stream: bool
    reply: Callable[[ReplyHead], BlockReply]
    left_out: tuple[str, ...] = ()


def make_question(
    body: Json,
    chat: ChatRequest,
    reply: Callable[[ReplyHead], BlockReply],
    left_out: Iterable[str],
    ignored: Iterable[str],
) -> Question:
    """Return a decoded body; `ignored` are fields that byok does not pass on."""
    present = (name for name in ignored if body.get(name))
    return Question(chat, flag(body, "stream") is True, reply, (*left_out, *present))
