"""The class and the function that an excerpt is in the middle of.

No parser is asked: what encloses a line is indented less, in any language that people
indent, and begins like a definition.
"""

import re
from collections.abc import Sequence

_MOST = 2  # a class and a function
_FARTHEST = 2_000  # lines that are looked at
_LONGEST = 400  # characters of one
_COMMENTED = 40
# Comments, lines of a preprocessor, labels.
_COMMENT = re.compile(
    r"\s*(?://|/\*|\*|--|;|<!--|\"\"\"|'''|\w+:\s*$|#(?!\w|\[)"
    r"|#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region)\b)"
)
_CLOSES = re.compile(r"\s*(?:[)\]}]|end\b|</|[^\w\s@#&*~$\"'`<]*$)")
_DEFINES = re.compile(
    r"\s*(?:[\w@#&*<>,:.=\[\]]+\s+)*?(?:def|class|fn|fun|func|function|sub|struct|interface"
    r"|enum|trait|impl|type|object|record|module|mod|namespace|protocol|extension|union"
    r"|contract|service|message|defmodule|defp?|macro_rules!)\b\s*[\w({<*&$]"
)
# A function in C and its kin: a type, a name and parameters, and no word of control.
_SIGNATURE = re.compile(
    r"\s*(?!(?:if|else|elif|for|foreach|while|switch|case|do|try|catch|except|with|return"
    r"|match|loop|select|when|unless|until|using|lock|synchronized|await|throw|new|yield"
    r"|assert|expect|go|defer)\b)"
    r"(?:(?:[\w:<>,.&*\[\]?~@]+\s+)*[\w:~&*]+(?:<[^<>]*>)?\s*\([^;]*$"
    r"|.*=>\s*[{(]\s*$)"
)


def find_enclosing(lines: Sequence[str], number: int) -> list[int]:
    """Return the lines of the class and the function around a line, the outer first.

    Lines are counted from 0. A line that begins a definition is not in it.
    """
    depth = _depth_at(lines, number) if number else 0
    found: list[int] = []
    for above in range(number - 1, max(-1, number - _FARTHEST), -1):
        if depth == 0:
            break
        line = lines[above][:_LONGEST]
        if not line or line[:depth].isspace():
            continue
        indent = len(line) - len(line.lstrip())
        if _COMMENT.match(line):
            continue
        if _CLOSES.match(line):  # `) -> X {` ends what begins above, as far out
            depth = min(depth, indent + 1)
            continue
        depth = indent
        if _DEFINES.match(line) or _SIGNATURE.match(line):
            found.append(above)
    return found[:_MOST][::-1]


def _depth_at(lines: Sequence[str], number: int) -> int:
    """Return how far the first line of code from here on is indented.

    A comment belongs to what follows it.
    """
    for line in lines[number : number + _COMMENTED]:
        if line.strip() and not _COMMENT.match(line):
            return len(line) - len(line.lstrip())
    return 0
