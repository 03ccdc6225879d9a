"""The reply lines that replace a region of a file."""

from collections.abc import Iterable
from typing import ClassVar

from byok.augment.positions import Region
from byok.augment.reply_job import ReplyFacts
from byok.augment.text_reply import empty_answer_error, was_cut
from byok.chat import Json
from byok.errors import ByokError
from byok.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.stage import Stage


class ReplacementLines:
    """LineReply: first the position, then the new text as it arrives.

    Clients replace whole lines, so the rest of the first and the last line is repeated.
    Nothing is sent before the model said something: a position without a text would
    delete the user's code, and so would a part of the text.
    """

    keeps_part = False
    heartbeat: ClassVar[Json | None] = {"text": ""}
    first: ClassVar[Json | None] = None
    omitted_tools = ()

    def __init__(
        self, clean: Stage[str, str], region: Region, facts: ReplyFacts
    ) -> None:
        self._clean = clean
        self._region = region
        self._facts = facts
        self._blank: list[str] = []  # white space before the first word
        self._begun = False
        self._finish: FinishReason | None = None

    def feed(self, event: StreamEvent, /) -> list[Json]:
        """Write the lines of one event."""
        match event:
            case TextDelta(text=text):
                return self._chunks(self._clean.feed(text))
            case Finish(reason=reason):
                self._finish = reason
            case _:
                pass
        return []

    def flush(self) -> list[Json]:
        """Write the rest.

        Raises:
            UpstreamGarbled: the text is cut or empty.
        """
        if self._finish is not FinishReason.STOP:
            raise was_cut(self._finish)
        rest = self._chunks(self._clean.flush())
        if not self._begun:
            raise empty_answer_error()
        return [*rest, _line(self._region.tail)] if self._region.tail else rest

    def fail(self, error: ByokError, /) -> list[Json]:
        """Write the error, and no text."""
        return [{"text": "", "error": self._facts.error(error)}]

    def _chunks(self, texts: Iterable[str]) -> list[Json]:
        found: list[Json] = []
        for text in texts:
            if not self._begun:
                self._blank.append(text)
                if not text.strip():
                    continue
                self._begun = True
                text = "".join((self._region.head, *self._blank))
                found.append(self._position())
            found.append(_line(text))
        return found

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
