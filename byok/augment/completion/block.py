"""Where a completion ends: with its line, or with its block."""

from typing import Protocol

from byok.augment.completion.cursor import Cursor, brackets, indent

MOST_LINES = 30
_LOOKED_AT = 500  # characters of the cursor's line


class Extent(Protocol):
    """Takes text while it streams, until it is enough."""

    @property
    def enough(self) -> bool:
        """Whether more text would change nothing."""
        ...

    def feed(self, text: str, /) -> None:
        """Take more text, with LF at the end of each line."""
        ...

    def take(self, *, whole: bool) -> str:
        """Return the text that belongs; if it is not `whole`, the stream was cut."""
        ...


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
        """Return the line; "" if it was cut."""
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
