"""The patterns of one ignore file: read by pathspec, matched by RE2 in linear time.

The patterns come from a repository and are not trusted: with Python's `re` a single
`*a*a*a` takes 160 ms for a name of 255 letters, and a file may hold a thousand of them.
So pathspec only turns a line into a regular expression, and RE2 matches many of them at
once, as a set. RE2 refuses to compile a set that needs too much memory: so lines are
divided among several sets, and a line that is too large even alone is left out and
reported as unreadable.

Git matches bytes: `?` and `[!a]` stand for one byte of a name, and `ü` has two. So do
these expressions. pathspec reads text, in which some bytes from 128 on and many below
32 would be spaces. So each of them is replaced by a character of the private use area
(`Icon` with a carriage return is not `Icon`), and so is what pathspec does not know in
brackets: classes such as `[:alpha:]`, and an escaped bracket.
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
_ESCAPES = re.compile(r"\\.|\[:[a-z]+:\]", re.DOTALL)  # each escape is one
_RE2: dict[int, str | int] = {
    private: spelled
    for spelled, private in (*_PRIVATE_USE.items(), *_IN_BRACKETS.items())
}
# Everything in a folder, or all folders in it: pathspec would match the folder, too.
_IN_FOLDER = re.compile(r"/\*\*(/?) *$")
# Characters of the expressions of a set. A literal character takes one instruction,
# others less, and RE2 refuses sets of more than about 70,000 instructions.
_MAX_SET_CHARS = 32_768
_OPTIONS = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1  # a byte is a character
_OPTIONS.dot_nl = True
_OPTIONS.never_capture = True
_OPTIONS.log_errors = False  # RE2 would write to stderr instead of the log


class Patterns:
    """The lines of an ignore file with this `name`; the last match decides.

    `unreadable` are the lines that RE2 cannot compile, which match nothing. Lines that
    git cannot read either are ignored, and not among them.
    """

    __slots__ = ("_ignores", "_sets", "lines", "name", "unreadable")

    def __init__(self, lines: Iterable[str], name: str = "") -> None:
        """Compile the lines."""
        self.name = name
        readable = [
            (line, *result) for line in lines if (result := _to_expression(line))
        ]
        expressions = [expression for _, expression, _ in readable]
        self.lines = [line for line, _, _ in readable]
        self._ignores: list[bool] = [ignores for _, _, ignores in readable]
        self._sets: list[tuple[int, re2.Set]] = []  # with the index of its first line
        self.unreadable: list[str] = []
        for start, end in _split_into_sets(expressions):
            for index, compiled in _compile(expressions, start, end):
                if compiled is None:
                    self.unreadable.append(readable[index][0])
                else:
                    self._sets.append((index, compiled))

    def __len__(self) -> int:
        return len(self._ignores)

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Tell whether a path is ignored (True), lifted (False) or not matched (None).

        The path is relative to the folder of the ignore file. A match of a folder is
        none of the paths in it: callers ask for the folders above a path first, and do
        not ask for paths in an ignored folder.
        """
        index = self.index_of(path, is_dir=is_dir)
        return None if index is None else self._ignores[index]

    def index_of(self, path: str, *, is_dir: bool) -> int | None:
        """Return the index of the line that decides about a path, or None."""
        try:
            name = f"{path}/" if is_dir else path
            raw = name.encode("utf-8", "surrogateescape")
        except UnicodeError:
            return None  # a name that no file can have
        for first, compiled in reversed(self._sets):
            if matches := compiled.Match(raw):
                index: int = first + max(matches)
                return index
        return None


def _to_expression(line: str) -> tuple[bytes, bool] | None:
    """Return the regular expression of a line, and whether it ignores or lifts.

    Return None if the line matches nothing, as lines that git cannot read.
    """
    try:
        # What pathspec would misread is replaced by characters of the private use area.
        text = line.encode("utf-8", "surrogateescape").decode("latin-1")
        text = _ESCAPES.sub(_replace_escape, text).translate(_PRIVATE_USE)
        text = _IN_FOLDER.sub(r"/**/*\1", text)
        expression, ignores = GitIgnoreSpecPattern.pattern_to_regex(text)
    except (GitIgnorePatternError, UnicodeError):
        return None
    if expression is None or ignores is None:
        return None
    # pathspec's expressions also match paths in a folder of that name; `$` prevents it.
    return f"(?:{expression})$".translate(_RE2).encode("latin-1"), ignores


def _replace_escape(match: re.Match[str]) -> str:
    private = _IN_BRACKETS.get(match[0])
    return match[0] if private is None else chr(private)


def _split_into_sets(expressions: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of expressions that are compiled together, in order."""
    start = size = 0
    for index, expression in enumerate(expressions):
        size += len(expression)
        if size > _MAX_SET_CHARS and index > start:
            yield start, index
            start, size = index, len(expression)
    if start < len(expressions):
        yield start, len(expressions)


def _compile(
    expressions: Sequence[bytes], start: int, end: int
) -> Iterator[tuple[int, re2.Set | None]]:
    """Yield sets for a range of expressions, in order, each with its first index.

    If RE2 refuses a range, its halves are compiled; a single expression that is refused
    yields None.
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
    """Return the lines of an ignore file that may be patterns."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [line for line in lines if line.strip() and not line.startswith("#")]
