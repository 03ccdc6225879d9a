"""The patterns of one ignore file: read by pathspec, matched by RE2 in linear time.

The patterns come from a repository and are not trusted: with Python's `re` a single
`*a*a*a` takes 160 ms for a name of 255 letters, and a file may hold a thousand of them.
So pathspec only turns a line into a regular expression, and RE2 matches many of them at
once, as a set. A set has a limited memory, and beyond that RE2 refuses to compile it:
lines are shared out among several sets, and one that even alone is too much is left
out and reported as unreadable.

Git matches bytes: `?` and `[!a]` stand for one byte of a name, and `ü` has two. So do
these expressions. pathspec reads text, where some bytes from 128 on and many below 32
would be spaces, so it is given a character of the private use area for each of them
(`Icon` and a carriage return is not `Icon`), and for what it does not know in brackets:
classes such as `[:alpha:]`, and an escaped bracket.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import re2
from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_PRIVATE_USE = {byte: 0xE000 + byte for byte in (*range(32), *range(128, 256))}
_CLASSES = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit"
_IN_BRACKETS = {rf"[:{name}:]": 0xE100 + at for at, name in enumerate(_CLASSES.split())}
_IN_BRACKETS[r"\]"] = 0xE200
_SPELLED = re.compile(r"\\.|\[:[a-z]+:\]", re.DOTALL)  # each escape is one
_RE2: dict[int, str | int] = {
    private: spelled
    for spelled, private in (*_PRIVATE_USE.items(), *_IN_BRACKETS.items())
}
# All in a folder, or all folders in it: for pathspec that is also the folder itself.
_IN_FOLDER = re.compile(r"/\*\*(/?) *$")
# Characters of expressions in one set. A literal one takes an instruction, the others
# less; RE2 refuses a set from some 70,000 instructions on.
_SET_SIZE = 32_768


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # a byte is a character
    options.dot_nl = True
    options.never_capture = True
    options.log_errors = False  # RE2 would write to stderr, past the log
    return options


_OPTIONS = _options()


class Patterns:
    """Lines of an ignore file of this name; the last that matches decides.

    `unreadable` are the lines that RE2 cannot match; they name nothing. A line that git
    could not read either is not among them.
    """

    __slots__ = ("_ignores", "_sets", "lines", "name", "unreadable")

    def __init__(self, lines: Iterable[str], name: str = "") -> None:
        """Compile the lines."""
        self.name = name
        found = [(line, *read) for line in lines if (read := _expression(line))]
        expressions = [expression for _, expression, _ in found]
        self.lines = [line for line, _, _ in found]
        self._ignores: list[bool] = [ignores for _, _, ignores in found]
        self._sets: list[tuple[int, re2.Set]] = []  # with the place of its first line
        self.unreadable: list[str] = []
        for start, end in _shares(expressions):
            for place, compiled in _compile(expressions, start, end):
                if compiled is None:
                    self.unreadable.append(found[place][0])
                else:
                    self._sets.append((place, compiled))

    def __len__(self) -> int:
        return len(self._ignores)

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Tell whether a path is ignored (True), lifted (False) or not named (None).

        The path is relative to the folder of the ignore file. What is said of a folder
        is not said of what is in it: folders above a path are asked for first, and
        nothing in an ignored one is asked for.
        """
        place = self.place_of(path, is_dir=is_dir)
        return None if place is None else self._ignores[place]

    def place_of(self, path: str, *, is_dir: bool) -> int | None:
        """Return which of the `lines` decides about a path, None if none names it."""
        try:
            name = f"{path}/" if is_dir else path
            raw = name.encode("utf-8", "surrogateescape")
        except UnicodeError:
            return None  # a name that no file can have
        for first, compiled in reversed(self._sets):
            if found := compiled.Match(raw):
                place: int = first + max(found)
                return place
        return None


def _expression(line: str) -> tuple[bytes, bool] | None:
    """Return what matches the paths that a line names, and whether it ignores them.

    None if it names nothing, as git says of a line that it cannot read.
    """
    try:
        text = _IN_FOLDER.sub(r"/**/*\1", _spell_bytes(line))
        expression, ignores = GitIgnoreSpecPattern.pattern_to_regex(text)
    except (GitIgnorePatternError, UnicodeError):
        return None
    if expression is None or ignores is None:
        return None
    # pathspec's also match what is in a folder of that name: `$` leaves that out.
    return f"(?:{expression})$".translate(_RE2).encode("latin-1"), ignores


def _spell_bytes(text: str) -> str:
    """Return a text with private characters for what pathspec would read otherwise."""
    raw = text.encode("utf-8", "surrogateescape")
    return _SPELLED.sub(_spell_in_brackets, raw.decode("latin-1")).translate(
        _PRIVATE_USE
    )


def _spell_in_brackets(found: re.Match[str]) -> str:
    private = _IN_BRACKETS.get(found[0])
    return found[0] if private is None else chr(private)


def _shares(expressions: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of expressions that are to be compiled together, in order."""
    start = size = 0
    for place, expression in enumerate(expressions):
        size += len(expression)
        if size > _SET_SIZE and place > start:
            yield start, place
            start, size = place, len(expression)
    if start < len(expressions):
        yield start, len(expressions)


def _compile(
    expressions: Sequence[bytes], start: int, end: int
) -> Iterator[tuple[int, re2.Set | None]]:
    """Yield sets of a range of expressions, in order, each with the first one's place.

    Where RE2 refuses a range, its halves are compiled; None stands for one expression
    that is refused.
    """
    compiled = re2.Set.SearchSet(_OPTIONS)
    try:
        for expression in expressions[start:end]:
            compiled.Add(expression)
        compiled.Compile()
    except re2.error:
        if end - start == 1:
            yield start, None
            return
        middle = (start + end) // 2
        yield from _compile(expressions, start, middle)
        yield from _compile(expressions, middle, end)
    else:
        yield start, compiled


def pattern_lines(content: bytes) -> list[str]:
    """Return the lines of an ignore file that may hold a pattern."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [line for line in lines if line.strip() and not line.startswith("#")]
