"""Inline completion: the part of a model's text that fits at the cursor."""

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from msgspec import Struct

from byok.core.bounded import BoundedMap
from byok.core.chat import Json
from byok.core.errors import ByokError
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.core.stage import Stage, chain
from byok.protocols.augment.models import (
    COMPLETION_TIMEOUT_MS,
    PREFIX_CHARS,
    SUFFIX_CHARS,
)
from byok.protocols.augment.positions import line_ending, normal
from byok.protocols.augment.reply_job import ReplyFacts

# The code around the cursor, as the client sent it.


# An escaped quote is a token of its own; else each quote would need a lookbehind.
_TOKEN = re.compile(
    r"\\[\\\"']|"
    r'"(?:[^"\\\n]|\\.)*+"'
    r"|'(?:[^'\\\n]|\\.)*+'"
    r"|`[^`\n]*+`|([(\[{])|([)\]}])"
)


@dataclass(frozen=True)
class Cursor:
    """The text before and after the cursor, and the path of the file."""

    before: str
    after: str
    path: str = ""

    @cached_property
    def head(self) -> str:
        """The text before the cursor, with LF."""
        return normal(self.before)

    @cached_property
    def tail(self) -> str:
        """The text after the cursor, with LF."""
        return normal(self.after)

    @property
    def line(self) -> str:
        """The part of the cursor's line before the cursor."""
        return self.head.rpartition("\n")[2]

    @property
    def rest(self) -> str:
        """The part of the cursor's line after the cursor."""
        return self.tail.partition("\n")[0]

    @property
    def one_line(self) -> bool:
        """Whether code stands on both sides of the cursor: complete only its line."""
        return bool(self.line.strip() and self.rest.strip())

    @property
    def next_line(self) -> str:
        """The first line below the cursor that is not blank, or ""."""
        below = self.tail.partition("\n")[2].split("\n")
        return next((line for line in below if line.strip()), "")


def brackets(code: str) -> tuple[int, int]:
    """Count the closing brackets without opening ones, and the reverse.

    Brackets in strings that end in their line do not count.
    """
    closing = opening = 0
    for token in _TOKEN.finditer(code):
        if token[1]:
            opening += 1
        elif token[2] and opening:
            opening -= 1
        elif token[2]:
            closing += 1
    return closing, opening


def indent(line: str) -> int:
    """Return the length of a line's leading white space."""
    return len(line) - len(line.lstrip(" \t"))


# Where a completion ends: with its line, or with its block. Text is taken as it comes,
# with LF at the end of each line, until it is enough: more would change nothing.


MOST_LINES = 30
_LOOKED_AT = 500  # characters of the cursor's line


class OneLine:
    """Extent of the rest of the cursor's line, if there is code behind the cursor.

    If there is only white space before the cursor, a whole line may be inserted:
    `again` is the line break and that white space.
    """

    def __init__(self, again: str = "") -> None:
        self._again = again
        self._text = ""

    @property
    def enough(self) -> bool:
        """Whether the line is complete."""
        more = self._text[len(self._text.partition("\n")[0]) :]
        begun = self._again.startswith(more) and len(more) < len(self._again)
        return bool(more) and not begun

    def feed(self, text: str, /) -> None:
        """Take more text."""
        self._text += text

    def take(self, *, whole: bool) -> str:
        """Return the line; "" if it was cut, as a stream that is not `whole` may be."""
        line = self._text.partition("\n")[0]
        more = self._text[len(line) :]
        if not line.strip() or not (whole or more):
            return ""
        return line + self._again if more.startswith(self._again) else line


class IndentedBlock:
    """Extent of a block: it ends before a line with less indentation or a paragraph.

    Text that continues the cursor's line ends with that statement, including brackets
    and inner lines. A line that already stands below the cursor does not belong; a
    closing bracket there may match another opening one.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._line = cursor.line
        self._next = cursor.next_line.rstrip()
        self._base = indent(cursor.line)
        self._siblings = (
            not cursor.line.strip()
        )  # whether lines with the base indentation belong
        self._depth = self._before = brackets(cursor.line[-_LOOKED_AT:])[1]
        self._kept: list[str] = []
        self._open = ""  # the line that is not complete yet
        self._begun = False  # a line that is not blank came,
        self._blank = False  # and then a blank one
        self.enough = False

    def feed(self, text: str, /) -> None:
        """Take more text."""
        *lines, self._open = (self._open + text).split("\n")
        for line in lines:
            if not self.enough and self._takes(line):
                self._kept.append(line)

    def take(self, *, whole: bool) -> str:
        """Return the block; if it was cut, only its complete lines."""
        lines = self._kept
        if whole and not self.enough and self._takes(self._open):
            lines = [*lines, self._open]
        return "\n".join(lines).rstrip()

    def _takes(self, line: str) -> bool:
        """Tell whether a line belongs, and note whether it is the last one."""
        if not line.strip():
            self._blank = self._begun
            return True
        if not self._begun:
            self._begin(line)
        closes = line.lstrip()[0] in ")]}" and self._depth > 0
        outside = self._is_outside(line)
        if self._is_below(line) or (outside and not closes):
            self.enough = True
            return False
        self._begun = True
        closing, opening = brackets(line)
        self._depth += opening - closing
        closed = self._depth < 0 or (outside and self._depth == 0)
        self.enough = closed or len(self._kept) + 1 >= MOST_LINES
        return True

    def _begin(self, line: str) -> None:
        """Determine the block's indentation from its first line."""
        here = indent(line)
        if not self._kept:  # it continues the cursor's line
            self._base += here if self._siblings else 0
        elif not self._siblings and here <= self._base:
            self._base, self._siblings = here, True  # the next statement

    def _is_outside(self, line: str) -> bool:
        if not self._kept:
            return False
        here = indent(line)
        if here == self._base:
            return self._blank or not self._siblings
        return here < self._base

    def _is_below(self, line: str) -> bool:
        """Tell whether this line already stands below the cursor."""
        there = line if self._kept else self._line + line
        if there.rstrip() != self._next:
            return False
        if line.lstrip()[0] not in ")]}":
            return True
        closed = self._before - self._depth + brackets(line)[0]
        wanted = brackets(self._cursor.head)[1] - brackets(self._cursor.tail)[0]
        return closed > wanted


# Remove what a model repeats of the text around the cursor.


_MOST_LINES = 30  # above the cursor, which a model may repeat
_MOST_CHARS = 400  # behind the cursor
_MOST_TRIES = 8  # only rows of brackets have more possible ends
_WORD = re.compile(r"\w{3,}\Z")
_MARK = re.compile(r"\s*[-/#;%*]+[ \t]+")
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
    if line and (line.isspace() or _is_begun(line)):
        found.append(line)
    if _is_begun(line) and line != line.lstrip():
        found.append(line.lstrip())
    return found


def _is_telling(text: str) -> bool:
    """Tell whether lines are hardly written twice, unlike rows of a table."""
    return len({line.strip() for line in text.split("\n")} - {""}) > 1


def _is_begun(line: str) -> bool:
    """Tell whether a line has a word, or the mark of a comment or an item."""
    bare = line.strip()
    has_word = len(bare) > 1 and any(char.isalnum() for char in bare)
    return has_word or bool(_MARK.fullmatch(line))


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


# Cut a model's text so that it fits at the cursor, and tell when enough arrived.


MOST_CHARS = 4000


class Cutter:
    """Takes text while it streams; `text` returns the part that fits at the cursor.

    Only line ends are changed, to those of the file. How the stream was sliced makes no
    difference.
    """

    def __init__(
        self, cursor: Cursor, unfence: Stage[str, str], *, one_line: bool = False
    ) -> None:
        self._cursor = cursor
        self._ending = line_ending(cursor.before, cursor.after)
        self._stage = chain(unfence, Unrepeated(cursor))
        self._extent = _extent(cursor, one_line=one_line)
        self._return = ""  # a CR that may be the first half of a line's end
        self._length = 0

    @property
    def enough(self) -> bool:
        """Whether more text would change nothing."""
        return self._extent.enough or self._length >= MOST_CHARS

    def feed(self, text: str) -> None:
        """Take more text."""
        text, self._return = self._return + text, ""
        if text.endswith("\r"):
            text, self._return = text[:-1], "\r"
        for piece in self._stage.feed(normal(text)):
            self._take(piece)

    def text(self, *, whole: bool) -> str:
        """Return the part that fits; only complete lines if it is not `whole`."""
        if whole and not self.enough:
            for piece in self._stage.flush():
                self._take(piece)
        cut = self._extent.take(whole=whole or self._length >= MOST_CHARS)
        found = without_suffix(cut, self._cursor.tail)
        if not found.strip():
            return ""
        return found.replace("\n", self._ending) if self._ending else found

    def _take(self, piece: str) -> None:
        if not self.enough:
            piece = piece[: MOST_CHARS - self._length]
            self._length += len(piece)
            self._extent.feed(piece)


def _extent(cursor: Cursor, *, one_line: bool) -> OneLine | IndentedBlock:
    if one_line or cursor.one_line:
        return OneLine()
    if cursor.rest.strip():
        return OneLine(f"\n{cursor.line}")
    return IndentedBlock(cursor)


class CompletionObject:
    """ObjectReply with the text at the cursor; a failure is a reply without items.

    An error would leave the editor's status bar in a failed state. The retrieval facts
    may arrive while the model answers; whoever writes the object last sets them.
    """

    def __init__(self, cutter: Cutter, cursor: Cursor, facts: ReplyFacts) -> None:
        self._cutter = cutter
        self.facts = facts
        self._finish: FinishReason | None = None
        self.cursor = cursor
        self.text = ""  # that was given

    @property
    def enough(self) -> bool:
        """Whether the model need not continue."""
        return self._cutter.enough

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect the text; nothing is written yet."""
        match event:
            case TextDelta(text=text):
                self._cutter.feed(text)
            case Finish(reason=reason):
                self._finish = reason
            case _:
                pass
        return ()

    def flush(self) -> Iterator[Json]:
        """Return the text that fits; if a limit cut it, its complete lines."""
        lines = self._cutter.text(whole=False)
        if self._finish is FinishReason.CONTENT_FILTER:
            yield self.write("")
        elif self._finish is FinishReason.LENGTH and lines:
            yield self.write(lines)
        else:
            yield self.write(self._cutter.text(whole=True))

    def in_time(self) -> Json:
        """Return the complete lines that arrived so far."""
        return self.write(self._cutter.text(whole=False))

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return no item."""
        del error
        return self.write("")

    def write(self, text: str) -> dict[str, Any]:
        """Write the object for a text; "" is no item."""
        self.text = text
        item = {"text": text, "suffix_replacement_text": "", "skipped_suffix": ""}
        return {
            "completion_items": [item] if text else [],
            "text": text,  # for old readers
            **self.facts.fields,
            "unknown_memory_names": list(self.facts.unknown),
            "suggested_prefix_char_count": PREFIX_CHARS,
            "suggested_suffix_char_count": SUFFIX_CHARS,
            "completion_timeout_ms": COMPLETION_TIMEOUT_MS,
        }


# Reuse a completion that was shown, while the user types along it.


MOST = 128
_TELLING = 1000  # characters; no two places share so many


class _Prediction(Struct, frozen=True):
    cursor: Cursor
    text: str


class Shown:
    """The last completion for each of the newest keys, such as model and file."""

    def __init__(self, most: int = MOST) -> None:
        self._found = BoundedMap[Hashable, _Prediction](most)

    def keep(self, key: Hashable, cursor: Cursor, text: str) -> None:
        """Store a completion; an empty one is ignored."""
        if text:
            self._found[key] = _Prediction(cursor, text)

    def rest(self, key: Hashable, cursor: Cursor) -> str:
        """Return the rest of the completion if its beginning was typed, else ""."""
        shown = self._found.get(key)
        if shown is None or shown.cursor.after != cursor.after:
            return ""
        return _rest(shown, cursor.before)


def _rest(shown: _Prediction, before: str) -> str:
    """Return the part of the completion that was not typed yet, "" at another place.

    A client sends a window of the file: typing moves it, but most of it stays the same.
    """
    seen, text = shown.cursor.before, shown.text
    for typed in range(max(0, len(before) - len(seen)), len(text)):
        same = len(before) - typed
        if same < len(seen) and same < _TELLING:
            continue
        if before.endswith(text[:typed]) and seen.endswith(before[:same]):
            return text[typed:] if text[typed:].strip() else ""
    return ""
