"""Reasoning between think tags at the start of an answer's text, made into thoughts.

Some servers remove the reasoning but not its closing tag. A closing tag at the start of
an answer is removed. Models that want their reasoning back want it between the same
tags, so the block ends with these as its data: `{"tags": [OPENING, CLOSING]}`, with the
white space around them.
"""

from collections.abc import Iterator

from byok.core.chat import NO_ORIGIN, Json, Origin, ProviderData
from byok.core.events import Finish, StreamEvent, TextDelta, ThinkingDelta

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
