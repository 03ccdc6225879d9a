"""Replies with one text that is used only if complete, or that replaces a region."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from byok.core.chat import Json
from byok.core.errors import ByokError, UpstreamEmpty, UpstreamGarbled
from byok.core.events import Finish, FinishReason, Notice, StreamEvent, TextDelta
from byok.core.stage import Stage
from byok.protocols.augment.chat_reply import StopReason, chunk
from byok.protocols.augment.positions import Region
from byok.protocols.augment.reply_job import ReplyFacts


def empty_answer_error() -> UpstreamEmpty:
    """Return the error for an answer without text."""
    return UpstreamEmpty(
        "The model gave an empty answer.",
        hint="Try again, or another model.",
        retryable=True,
    )


def was_cut(reason: FinishReason | None) -> UpstreamGarbled:
    """Return the error for an answer that ended too early."""
    match reason:
        case FinishReason.CONTENT_FILTER:
            message, hint = "A content filter ended the model's answer.", ""
        case FinishReason.TOOL_CALLS:
            message = "The model called a tool instead of answering."
            hint = "Try again, or another model."
        case _:
            message = "The model's answer was cut before its end."
            hint = "Raise max_tokens, or ask about less."
    return UpstreamGarbled(message, code="upstream_cut", hint=hint)


class _Unchanged:
    """A Stage[str, str] that changes nothing."""

    def feed(self, text: str, /) -> tuple[str]:
        return (text,)

    def flush(self) -> tuple[()]:
        return ()


UNCHANGED = _Unchanged()


class WholeText:
    """A collector of a text that would do harm if it were incomplete."""

    keeps_part = False

    def __init__(self, clean: Stage[str, str], facts: ReplyFacts) -> None:
        self._clean = clean
        self._facts = facts
        self._texts: list[str] = []
        self._finish: FinishReason | None = None
        self._failure: Notice | None = None

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect the text, the finish reason, and a failure."""
        match event:
            case TextDelta(text=text):
                return self._add(self._clean.feed(text))
            case Finish(reason=reason):
                self._finish = reason
            case Notice(code=code) if code:
                self._failure = self._failure or event
            case _:
                pass
        return ()

    def _add(self, texts: Iterable[str]) -> Iterable[Json]:
        """Collect pieces of the text; nothing is written yet."""
        self._texts += texts
        return ()

    def whole(self) -> str:
        """Return the text.

        Raises:
            UpstreamGarbled: the text is cut or empty.
        """
        self._check_end()
        text = self.so_far()
        if not text.strip():
            raise self._reported_failure() or empty_answer_error()
        return text

    def so_far(self) -> str:
        """Return the text so far, which may be incomplete."""
        self._add(self._clean.flush())
        return "".join(self._texts)

    def _check_end(self) -> None:
        if self._finish is not FinishReason.STOP:
            raise self._reported_failure() or was_cut(self._finish)

    def _reported_failure(self) -> UpstreamGarbled | None:
        """Return the failure that the answer itself reported, if any."""
        failure = self._failure
        return UpstreamGarbled(failure.text, code=failure.code) if failure else None


class TextLines(WholeText):
    """A LineReply with the cleaned text as one chat chunk, once it is complete.

    The client puts the text into an input field. So it never contains notices or a part
    of a failed answer. `instead` is the text in that field before: it is repeated if a
    failure can no longer be an HTTP status.
    """

    heartbeat: ClassVar[Json | None] = chunk()

    def __init__(
        self, clean: Stage[str, str], facts: ReplyFacts, *, instead: str = ""
    ) -> None:
        super().__init__(clean, facts)
        self._instead = instead

    @property
    def first(self) -> Json:
        """The chunk with the retrieval facts."""
        return {**chunk(), **self._facts.fields}

    def flush(self) -> Iterator[Json]:
        """Write the answer.

        Raises:
            UpstreamGarbled: the text is cut or empty.
        """
        if self._facts.is_asked:
            yield chunk(self.whole())
        yield chunk(stop=StopReason.END_TURN)

    def fail(self, error: ByokError, /) -> Iterator[Json]:
        """End a failed answer, without a part of its text."""
        last = chunk(self._instead, stop=StopReason.UNSPECIFIED)
        yield {**last, "error": self._facts.error(error)}


class WholeObject(WholeText):
    """An ObjectReply with the text in an object; a failed answer is an error."""

    def flush(self) -> Iterator[Json]:
        """Return the object.

        Raises:
            UpstreamGarbled: the text is cut or empty.
        """
        yield self.write(self.whole())

    def fail_whole(self, error: ByokError, /) -> Json:
        """Raise the error: the client would treat a part of the text as complete."""
        raise error

    def write(self, text: str) -> dict[str, Any]:
        """Write the object."""
        return {"text": text, **self._facts.fields}


class ReplacementLines(WholeText):
    """A LineReply with the position of a region, then its new text as it arrives.

    Clients replace whole lines, so the other parts of the first and the last line are
    repeated. Nothing is sent before the model's first word: a position without a text
    would delete the user's code, and so would a part of the text.
    """

    heartbeat: ClassVar[Json | None] = {"text": ""}
    first: ClassVar[Json | None] = None

    def __init__(
        self, clean: Stage[str, str], region: Region, facts: ReplyFacts
    ) -> None:
        super().__init__(clean, facts)
        self._region = region
        self._blank: list[str] = []  # white space before the first word
        self._begun = False

    def flush(self) -> list[Json]:
        """Write the end of the text.

        Raises:
            UpstreamGarbled: the text is cut or empty.
        """
        self._check_end()
        lines = self._add(self._clean.flush())
        if not self._begun:
            raise self._reported_failure() or empty_answer_error()
        return [*lines, _line(self._region.tail)] if self._region.tail else lines

    def fail(self, error: ByokError, /) -> list[Json]:
        """Write the error, and no text."""
        return [{"text": "", "error": self._facts.error(error)}]

    def _add(self, texts: Iterable[str]) -> list[Json]:
        """Write pieces of the text; the position comes before the first word."""
        lines: list[Json] = []
        for text in texts:
            if not self._begun:
                self._blank.append(text)
                if not text.strip():
                    continue
                self._begun = True
                text = "".join((self._region.head, *self._blank))
                lines.append(self._position())
            lines.append(_line(text))
        return lines

    def _position(self) -> Json:
        return {
            "text": "",
            "replacement_start_line": self._region.start,
            "replacement_end_line": self._region.end,
            "replacement_old_text": self._region.shown,
            **self._facts.fields,
        }


def _line(text: str) -> Json:
    return {"text": text, "replacement_text": text}
