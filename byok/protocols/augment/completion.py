"""Inline completion: the part of a model's text that fits at the cursor.

The text is read in pieces, with LF as line ending, until further text would change
nothing.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

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

MAX_CHARS = 4000
MAX_LINES = 30
_MAX_LINE_CHARS = 500  # of the cursor's line, whose brackets are counted
_MAX_REPEATED_LINES = 30  # above the cursor
_MAX_REPEATED_CHARS = 400  # after the cursor
_MAX_OVERLAPS = 8  # only rows of brackets have more
_WORD = re.compile(r"\w{3,}\Z")
_COMMENT_MARK = re.compile(r"\s*[-/#;%*]+[ \t]+")
_QUOTES = "\"'`"
_MAX_SHOWN = 128
_MIN_COMMON_CHARS = 1000  # enough to identify a position in a file
# Strings and brackets. An escaped quote is a token, so that quotes need no lookbehind.
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
    def line_tail(self) -> str:
        """The part of the cursor's line after the cursor."""
        return self.tail.partition("\n")[0]

    @property
    def one_line(self) -> bool:
        """Whether there is code on both sides, so that only the line is completed."""
        return bool(self.line.strip() and self.line_tail.strip())

    @property
    def next_line(self) -> str:
        """The first line below the cursor that is not blank, or ""."""
        below = self.tail.partition("\n")[2].split("\n")
        return next((line for line in below if line.strip()), "")


def brackets(code: str) -> tuple[int, int]:
    """Return the numbers of unmatched closing and of unmatched opening brackets.

    Brackets in strings that end on their line do not count.
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


# --- The extent of a completion ---


class OneLine:
    """The extent of a completion inside a line: up to the end of that line.

    If there is only white space before the cursor, a whole line may be inserted:
    `again` is the line break and that white space.
    """

    def __init__(self, again: str = "") -> None:
        self._again = again
        self._text = ""

    @property
    def enough(self) -> bool:
        """Whether the line is complete."""
        tail = self._text[len(self._text.partition("\n")[0]) :]
        may_be_again = self._again.startswith(tail) and len(tail) < len(self._again)
        return bool(tail) and not may_be_again

    def feed(self, text: str, /) -> None:
        """Add a piece of the text."""
        self._text += text

    def text(self, *, whole: bool) -> str:
        """Return the line; "" if it was cut, as a stream that is not `whole` may be."""
        line = self._text.partition("\n")[0]
        tail = self._text[len(line) :]
        if not line.strip() or not (whole or tail):
            return ""
        return line + self._again if tail.startswith(self._again) else line


class IndentedBlock:
    """The extent of a block: it ends before less indentation or a paragraph.

    Text that continues the cursor's line ends with that statement, including brackets
    and inner lines. A line that is already below the cursor does not belong to the
    block, unless it is a closing bracket that may match another opening one.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._line = cursor.line
        self._next = cursor.next_line.rstrip()
        self._base = indent(cursor.line)
        # Whether lines with the base indentation belong to the block.
        self._siblings = not cursor.line.strip()
        self._depth = self._opened = brackets(cursor.line[-_MAX_LINE_CHARS:])[1]
        self._lines: list[str] = []
        self._open = ""  # the line that is not complete yet
        self._begun = False  # a line that is not blank came
        self._blank = False  # then a blank line came
        self.enough = False

    def feed(self, text: str, /) -> None:
        """Add a piece of the text."""
        *lines, self._open = (self._open + text).split("\n")
        for line in lines:
            if not self.enough and self._accepts(line):
                self._lines.append(line)

    def text(self, *, whole: bool) -> str:
        """Return the block; if it was cut, only its complete lines."""
        lines = self._lines
        if whole and not self.enough and self._accepts(self._open):
            lines = [*lines, self._open]
        return "\n".join(lines).rstrip()

    def _accepts(self, line: str) -> bool:
        """Tell whether a line belongs to the block; set `enough` after the last one."""
        if not line.strip():
            self._blank = self._begun
            return True
        if not self._begun:
            self._begin(line)
        closes = line.lstrip()[0] in ")]}" and self._depth > 0
        is_outside = self._is_outside(line)
        if self._is_below(line) or (is_outside and not closes):
            self.enough = True
            return False
        self._begun = True
        closing, opening = brackets(line)
        self._depth += opening - closing
        is_closed = self._depth < 0 or (is_outside and self._depth == 0)
        self.enough = is_closed or len(self._lines) + 1 >= MAX_LINES
        return True

    def _begin(self, line: str) -> None:
        """Determine the block's indentation from its first line."""
        width = indent(line)
        if not self._lines:  # it continues the cursor's line
            self._base += width if self._siblings else 0
        elif not self._siblings and width <= self._base:
            self._base, self._siblings = width, True  # the next statement

    def _is_outside(self, line: str) -> bool:
        if not self._lines:
            return False
        width = indent(line)
        if width == self._base:
            return self._blank or not self._siblings
        return width < self._base

    def _is_below(self, line: str) -> bool:
        """Tell whether this line is already below the cursor."""
        full_line = line if self._lines else self._line + line
        if full_line.rstrip() != self._next:
            return False
        if line.lstrip()[0] not in ")]}":
            return True
        closed = self._opened - self._depth + brackets(line)[0]
        missing = brackets(self._cursor.head)[1] - brackets(self._cursor.tail)[0]
        return closed > missing


# --- Repetitions of the text around the cursor ---


class RepetitionRemover:
    """A Stage[str, str] that removes a repetition of the text before the cursor.

    Models repeat the beginning of the cursor's line, some lines above it as well, or
    the beginning of the word at the cursor.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._repetitions = _possible_repetitions(cursor)
        word = _WORD.search(cursor.line)
        self._word = word[0] if word else ""
        self._buffer: str | None = ""  # None once it is no repetition any more

    def feed(self, text: str, /) -> Iterator[str]:
        """Buffer the text as long as it may be a repetition."""
        if self._buffer is None:
            yield text
            return
        self._buffer += text
        longest = max((len(self._word) + 1, *map(len, self._repetitions)), default=0)
        text = self._buffer
        if len(text) <= longest and (
            (self._word and self._word.startswith(text))
            or any(len(t) > len(text) and t.startswith(text) for t in self._repetitions)
        ):
            return
        yield from self.flush()

    def flush(self) -> Iterator[str]:
        """Return the buffered text without a repetition."""
        text, self._buffer = self._buffer, None
        if text:
            repeated = next((t for t in self._repetitions if text.startswith(t)), "")
            word = self._word
            following = text[len(word) : len(word) + 1]
            is_continued = following.isalnum() or following == "_"
            if not repeated and text.startswith(word) and is_continued:
                repeated = word
            if new := text[len(repeated) :]:
                yield new


def _possible_repetitions(cursor: Cursor) -> list[str]:
    """Return the texts that a model may have repeated, the longest first."""
    lines = cursor.head.split("\n")
    line = lines[-1]
    above = (
        "\n".join(lines[-count:])
        for count in range(min(_MAX_REPEATED_LINES, len(lines)), 1, -1)
    )
    # Nobody would write such lines twice, unlike rows of a table.
    texts = [
        t for t in above if len({line.strip() for line in t.split("\n")} - {""}) > 1
    ]
    if line and (line.isspace() or _has_content(line)):
        texts.append(line)
    if _has_content(line) and line != line.lstrip():
        texts.append(line.lstrip())
    return texts


def _has_content(line: str) -> bool:
    """Tell whether a line has a word, or the mark of a comment or an item."""
    bare = line.strip()
    has_word = len(bare) > 1 and any(char.isalnum() for char in bare)
    return has_word or bool(_COMMENT_MARK.fullmatch(line))


def without_suffix(text: str, suffix: str) -> str:
    """Return the text without an end that repeats the beginning of the suffix.

    An end that closes a bracket or quote of the text itself stays.
    """
    lengths = range(min(len(text), len(suffix), _MAX_REPEATED_CHARS), 0, -1)
    overlaps = (suffix[:n] for n in lengths if text.endswith(suffix[:n]))
    for end in islice(overlaps, _MAX_OVERLAPS):
        start = text[: -len(end)]
        if not _closes(start, end):
            return start
    return text


def _closes(start: str, end: str) -> bool:
    """Tell whether the end closes a bracket or quote that the start opened."""
    if brackets(end)[0] and brackets(start)[1]:
        return True
    return any(quote in end and start.count(quote) % 2 for quote in _QUOTES)


# --- The reply ---


class Cutter:
    """Cuts a streamed text; `text` returns the part that fits at the cursor.

    Line endings become those of the file, nothing else is changed. How the stream was
    sliced makes no difference.
    """

    def __init__(
        self, cursor: Cursor, unfence: Stage[str, str], *, one_line: bool = False
    ) -> None:
        self._cursor = cursor
        self._ending = line_ending(cursor.before, cursor.after)
        self._stage = chain(unfence, RepetitionRemover(cursor))
        self._extent = _extent(cursor, one_line=one_line)
        self._return = ""  # a CR that may be the first half of a CRLF
        self._length = 0  # characters so far

    @property
    def enough(self) -> bool:
        """Whether more text would change nothing."""
        return self._extent.enough or self._length >= MAX_CHARS

    def feed(self, text: str) -> None:
        """Add a piece of the text."""
        text, self._return = self._return + text, ""
        if text.endswith("\r"):
            text, self._return = text[:-1], "\r"
        for piece in self._stage.feed(normal(text)):
            self._add(piece)

    def text(self, *, whole: bool) -> str:
        """Return the part that fits; only complete lines if it is not `whole`."""
        if whole and not self.enough:
            for piece in self._stage.flush():
                self._add(piece)
        cut = self._extent.text(whole=whole or self._length >= MAX_CHARS)
        new = without_suffix(cut, self._cursor.tail)
        if not new.strip():
            return ""
        return new.replace("\n", self._ending) if self._ending else new

    def _add(self, piece: str) -> None:
        if not self.enough:
            piece = piece[: MAX_CHARS - self._length]
            self._length += len(piece)
            self._extent.feed(piece)


def _extent(cursor: Cursor, *, one_line: bool) -> OneLine | IndentedBlock:
    if one_line or cursor.one_line:
        return OneLine()
    if cursor.line_tail.strip():
        return OneLine(f"\n{cursor.line}")
    return IndentedBlock(cursor)


class CompletionObject:
    """An ObjectReply with the text at the cursor; a failure is a reply without items.

    An error would leave the editor's status bar in a failed state. The retrieval facts
    may arrive while the model answers, so they can be set until the object is written.
    """

    def __init__(self, cutter: Cutter, cursor: Cursor, facts: ReplyFacts) -> None:
        self._cutter = cutter
        self.facts = facts
        self._finish: FinishReason | None = None
        self.cursor = cursor
        self.text = ""  # of the written object

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
        """Return the text that fits; if a limit cut it, only its complete lines."""
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


class ShownCompletions:
    """The last completion for each key, such as model and file.

    It is reused while the user types along it.
    """

    def __init__(self, most: int = _MAX_SHOWN) -> None:
        self._shown = BoundedMap[Hashable, tuple[Cursor, str]](most)

    def store(self, key: Hashable, cursor: Cursor, text: str) -> None:
        """Store a completion; an empty one is ignored."""
        if text:
            self._shown[key] = (cursor, text)

    def remaining(self, key: Hashable, cursor: Cursor) -> str:
        """Return the part that was not typed yet, "" if the user typed other text.

        A client sends a window of the file, which moves while the user types.
        """
        shown, text = self._shown.get(key) or (cursor, "")
        if shown.after != cursor.after:
            return ""
        old, before = shown.before, cursor.before
        for typed in range(max(0, len(before) - len(old)), len(text)):
            same = len(before) - typed
            if same < len(old) and same < _MIN_COMMON_CHARS:
                continue
            if before.endswith(text[:typed]) and old.endswith(before[:same]):
                return text[typed:] if text[typed:].strip() else ""
        return ""
