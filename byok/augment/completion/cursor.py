"""A cursor: what a client sent around it, and how that is read."""

import re
from dataclasses import dataclass
from functools import cached_property

from byok.augment.positions import normal

# Without the quotes that a backslash makes plain, each of them would be looked behind.
_TOKEN = re.compile(
    r"\\[\\\"']|"
    r'"(?:[^"\\\n]|\\.)*+"'
    r"|'(?:[^'\\\n]|\\.)*+'"
    r"|`[^`\n]*+`|([(\[{])|([)\]}])"
)


@dataclass(frozen=True)
class Cursor:
    """Text before and after the cursor, as the client has it, and the file's path."""

    before: str
    after: str
    path: str = ""

    @cached_property
    def head(self) -> str:
        """What stands before, with LF at the end of each line."""
        return normal(self.before)

    @cached_property
    def tail(self) -> str:
        """What stands after, with LF at the end of each line."""
        return normal(self.after)

    @property
    def line(self) -> str:
        """What stands before the cursor in its line."""
        return self.head.rpartition("\n")[2]

    @property
    def rest(self) -> str:
        """What stands behind the cursor in its line."""
        return self.tail.partition("\n")[0]

    @property
    def one_line(self) -> bool:
        """Whether code stands on both sides of the cursor: only that line goes on."""
        return bool(self.line.strip() and self.rest.strip())

    @property
    def next_line(self) -> str:
        """The first line below the cursor's that is not blank, or ""."""
        below = self.tail.partition("\n")[2].split("\n")
        return next((line for line in below if line.strip()), "")


def brackets(code: str) -> tuple[int, int]:
    """Count closing brackets without their opening ones, and the other way round.

    Those in strings that end in their line do not count.
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
    """Return how much white space a line begins with."""
    return len(line) - len(line.lstrip(" \t"))
