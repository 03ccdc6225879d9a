"""Replies that consist of one text: streamed, or used only when whole."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from byok.augment.chat_reply import STOP_REASONS, StopReason, chunk
from byok.augment.reply_job import ReplyFacts
from byok.chat import Json
from byok.errors import ByokError, UpstreamEmpty, UpstreamError, UpstreamGarbled
from byok.events import Finish, FinishReason, Notice, StreamEvent, TextDelta
from byok.stage import Stage


def empty_answer_error() -> UpstreamEmpty:
    """Return the error for an answer without text."""
    return UpstreamEmpty(
        "The model gave an empty answer.",
        hint="Try again, or another model.",
        retryable=True,
    )


def was_cut(reason: FinishReason | None) -> UpstreamGarbled:
    """Return the error for an answer that ended too early."""
    if reason is FinishReason.CONTENT_FILTER:
        message, hint = "A content filter ended the model's answer.", ""
    else:
        message = "The model's answer was cut before its end."
        hint = "Raise max_tokens, or ask about less code."
    return UpstreamGarbled(message, code="upstream_cut", hint=hint)


class TextLines:
    """LineReply with cleaned text as chat chunks, without reasoning and tool calls.

    byok's own notices never stand in the text, because the client uses all of it.
    `instead` is the text to return if the answer failed before it began.
    """

    keeps_part = True
    heartbeat: ClassVar[Json | None] = chunk()
    omitted_tools = ()

    def __init__(
        self,
        clean: Stage[str, str],
        facts: ReplyFacts,
        *,
        asked: bool,
        instead: str = "",
    ) -> None:
        self._clean = clean
        self._facts = facts
        self._asked = asked
        self._instead = instead
        self._said = False
        self._finish: FinishReason | None = None
        self._notice: Notice | None = None

    @property
    def first(self) -> Json:
        """The chunk with the retrieval facts."""
        return {**chunk(), **self._facts.fields}

    def feed(self, event: StreamEvent, /) -> list[Json]:
        """Write the chunks of one event."""
        match event:
            case TextDelta(text=text):
                return self._chunks(self._clean.feed(text))
            case Finish(reason=reason):
                self._finish = reason
            case Notice(code=code) if code:
                self._notice = self._notice or event
            case _:
                pass
        return []

    def flush(self) -> list[Json]:
        """Write the end of the answer.

        Raises:
            UpstreamGarbled: there was no text.
        """
        rest = self._chunks(self._clean.flush())
        if self._asked and not self._said:
            raise empty_answer_error()
        last = chunk(stop=STOP_REASONS[self._finish or FinishReason.STOP])
        if notice := self._notice:
            error = UpstreamError(notice.text, code=notice.code)
            last["error"] = self._facts.error(error)
        return [*rest, last]

    def fail(self, error: ByokError, /) -> list[Json]:
        """End a failed answer; the text so far is kept."""
        rest = self._chunks(self._clean.flush())
        if self._instead and not self._said:
            rest.append(chunk(self._instead))
        broke = isinstance(error, UpstreamError)
        stop = StopReason.UNSPECIFIED if broke else StopReason.END_TURN
        return [*rest, {**chunk(stop=stop), "error": self._facts.error(error)}]

    def _chunks(self, texts: Iterable[str]) -> list[Json]:
        found: list[Json] = [chunk(text) for text in texts if text]
        self._said = self._said or bool(found)
        return found


class WholeText:
    """Collects a text that would do harm if it were incomplete."""

    omitted_tools = ()

    def __init__(self, clean: Stage[str, str]) -> None:
        self._clean = clean
        self._texts: list[str] = []
        self._finish: FinishReason | None = None

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect the text; nothing is written yet."""
        match event:
            case TextDelta(text=text):
                self._texts += self._clean.feed(text)
            case Finish(reason=reason):
                self._finish = reason
            case _:
                pass
        return ()

    def whole(self) -> str:
        """Return the text.

        Raises:
            UpstreamGarbled: it is cut or empty.
        """
        if self._finish is not FinishReason.STOP:
            raise was_cut(self._finish)
        text = self.so_far()
        if not text.strip():
            raise empty_answer_error()
        return text

    def so_far(self) -> str:
        """Return the text, complete or not."""
        self._texts += self._clean.flush()
        return "".join(self._texts)


class WholeObject(WholeText):
    """ObjectReply with the text in an object; a failed answer is an error."""

    def __init__(self, clean: Stage[str, str], facts: ReplyFacts) -> None:
        super().__init__(clean)
        self._facts = facts

    def flush(self) -> Iterator[Json]:
        """Return the object.

        Raises:
            UpstreamGarbled: the text is cut or empty.
        """
        yield self.write(self.whole())

    def fail_whole(self, error: ByokError, /) -> Json:
        """Raise the error: a part of the text would be taken for all of it."""
        raise error

    def write(self, text: str) -> dict[str, Any]:
        """Write the object."""
        return {"text": text, **self._facts.fields}
