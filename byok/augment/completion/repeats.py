"""Remove what a model repeats of the text around the cursor."""

import re
from collections.abc import Iterator
from itertools import islice

from byok.augment.completion.cursor import Cursor, brackets

_MOST_LINES = 30  # above the cursor, which a model may repeat
_MOST_CHARS = 400  # behind the cursor
_MOST_TRIES = 8  # only rows of brackets have more possible ends
_WORD = re.compile(r"\w{3,}\Z")
_QUOTES = "\"'`"


class Unrepeated:
    """Stage[str, str] that removes a repetition of the text before the cursor.

    Models repeat the beginning of the cursor's line, some lines above it as well, or
    the word that was begun.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._told = _beginnings(cursor)
        word = _WORD.search(cursor.line)
        self._word = word[0] if word else ""
        self._held: str | None = ""  # None once it is decided

    def feed(self, text: str, /) -> Iterator[str]:
        """Hold text back as long as it may be a repetition."""
        if self._held is None:
            yield text
            return
        self._held += text
        longest = max((len(self._word) + 1, *map(len, self._told)), default=0)
        if len(self._held) <= longest and self._may_be_more():
            return
        yield from self.flush()

    def flush(self) -> Iterator[str]:
        """Return the held text that is new."""
        held, self._held = self._held, None
        if held:
            repeated = next((t for t in self._told if held.startswith(t)), "")
            if not repeated and self._is_word(held):
                repeated = self._word
            if new := held[len(repeated) :]:
                yield new

    def _may_be_more(self) -> bool:
        held = self._held or ""
        if self._word and (self._word.startswith(held)):
            return True
        return any(len(t) > len(held) and t.startswith(held) for t in self._told)

    def _is_word(self, text: str) -> bool:
        """Tell whether the text repeats the begun word and continues it."""
        word = self._word
        more = text[len(word) : len(word) + 1]
        return bool(word) and text.startswith(word) and (more.isalnum() or more == "_")


def _beginnings(cursor: Cursor) -> list[str]:
    """Return the texts that a model may have repeated, the longest first."""
    lines = cursor.head.split("\n")
    line = lines[-1]
    above = (
        "\n".join(lines[-count:])
        for count in range(min(_MOST_LINES, len(lines)), 1, -1)
    )
    found = [text for text in above if _is_telling(text)]
    if line and (line.isspace() or _is_word_like(line)):
        found.append(line)
    if _is_word_like(line) and line != line.lstrip():
        found.append(line.lstrip())
    return found


def _is_telling(text: str) -> bool:
    """Tell whether lines are hardly written twice, unlike rows of a table."""
    return len({line.strip() for line in text.split("\n")} - {""}) > 1


def _is_word_like(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 1 and any(char.isalnum() for char in bare)


def without_suffix(text: str, suffix: str) -> str:
    """Return the text without an end that repeats the beginning of the suffix.

    An end that closes a bracket or quote of the text itself is kept.
    """
    lengths = range(min(len(text), len(suffix), _MOST_CHARS), 0, -1)
    overlaps = (suffix[:n] for n in lengths if text.endswith(suffix[:n]))
    for end in islice(overlaps, _MOST_TRIES):
        kept = text[: -len(end)]
        if not _closes(kept, end):
            return kept
    return text


def _closes(kept: str, end: str) -> bool:
    """Tell whether the end closes what the text before it opened."""
    if brackets(end)[0] and brackets(kept)[1]:
        return True
    return any(quote in end and kept.count(quote) % 2 for quote in _QUOTES)
