"""The patterns of one ignore file: read by pathspec, matched by RE2 in linear time.

The patterns come from a repository and are not trusted: with Python's `re` a single
`*a*a*a` takes 160 ms for a name of 255 letters, and a file may hold a thousand of them.

Git matches bytes: `?` and `[!a]` stand for one byte of a name, and `ü` has two. So
each byte of a character beyond ASCII is matched as a character of its own.
"""

import re
import warnings
from collections.abc import Iterable

import re2
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_RE2 = "re2"
_UNREADABLE = (
    GitIgnorePatternError,
    OverflowError,
    RecursionError,
    UnicodeError,
    re.error,
)
_PRIVATE_USE = {byte: 0xE000 + byte for byte in range(128, 256)}
# All in a folder, or all folders in it: for pathspec that is also the folder itself.
_IN_FOLDER = re.compile(r"/\*\*(/?) *$")


class Patterns:
    """Lines of an ignore file; the last that matches decides."""

    __slots__ = ("_spec",)

    def __init__(self, lines: Iterable[str]) -> None:
        """Compile the lines; one that cannot be read names nothing, as in git."""
        patterns = [pattern for line in lines if (pattern := _pattern(line))]
        try:
            self._spec = GitIgnoreSpec(patterns, backend=_RE2)
        except (re2.error, UnicodeError):
            sound = [pattern for pattern in patterns if _compiles(pattern)]
            self._spec = GitIgnoreSpec(sound, backend=_RE2)

    def __len__(self) -> int:
        return len(self._spec)

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Tell whether a path is ignored (True), lifted (False) or not named (None).

        The path is relative to the folder of the ignore file. Folders above it are
        asked for first; nothing in an ignored one is asked for.
        """
        try:
            name = _spell_bytes(f"{path}/" if is_dir else path)
            return self._spec.check_file(name, separators=()).include
        except UnicodeError:
            return None  # a name that is no UTF-8


def _pattern(line: str) -> GitIgnoreSpecPattern | None:
    try:
        line = _IN_FOLDER.sub(r"/**/*\1", _spell_bytes(line))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of `re`, about odd character classes
            pattern = GitIgnoreSpecPattern(line)
    except _UNREADABLE:
        return None
    return pattern if pattern.include is not None else None


def _spell_bytes(text: str) -> str:
    """Return a text with a character of the private use area for each byte from 128."""
    if text.isascii():
        return text
    raw = text.encode("utf-8", "surrogateescape")
    return raw.decode("latin-1").translate(_PRIVATE_USE)


def _compiles(pattern: GitIgnoreSpecPattern) -> bool:
    try:
        GitIgnoreSpec([pattern], backend=_RE2)
    except (re2.error, UnicodeError):
        return False
    return True


def pattern_lines(content: bytes) -> list[str]:
    """Return the lines of an ignore file that may hold a pattern."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [line for line in lines if line.strip() and not line.startswith("#")]
