"""The code around the cursor, as the client sent it."""

import re
from dataclasses import dataclass
from functools import cached_property

from byok.augment.positions import normal

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
