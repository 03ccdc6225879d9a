"""Remove the code fence that models put around code, while the text streams."""

import re
from collections.abc import Iterator

from byok.augment.talk import is_talk, uncertain

_OPENING = re.compile(r"\s*(`{3,}|~{3,})[ \t]*([^`\r\n]*)(\r\n|\r|\n)")
_BEGUN = re.compile(r"\s*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^`\r\n]*\r?)\Z")
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\r\n]*)\s*\Z")
_ANY_FENCE = re.compile(r"(?m)^[ \t]*(?:`{3,}|~{3,})")
_MAYBE_FENCE = re.compile(r"[ \t]*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^`\r\n]*)\Z")
_MOST_HELD = 4096
_DEEPEST = 3  # spaces before a fence that is not part of indented code
MARKDOWN = frozenset({"markdown", "md"})


def has_fence(text: str) -> bool:
    """Tell whether any line looks like a fence."""
    return bool(_ANY_FENCE.search(text))


class Unfenced:
    """Stage[str, str] that returns the content of one outer fence, if there is one.

    The first line is held until it is known whether it opens a fence. Inside, a closing
    fence ends the text, and remarks behind it are dropped. But the text may contain
    fences itself: one with a language opens a block of the text, which the next closing
    fence ends. If another closing fence follows what looked like the end, that was part
    of the text; so everything is held back from there on.

    If the text is Markdown itself, only fences with one of the languages in `names` are
    outer ones. With `code`, there are no sentences between two fences of the text. If
    the file is not `fenced` yet, it has no fences of its own without a language: they
    belong to a remark with an example.
    """

    def __init__(
        self,
        names: frozenset[str] | None = None,
        *,
        code: bool = False,
        fenced: bool = True,
    ) -> None:
        self._names = names
        self._code = code
        self._fenced = fenced
        self._first = ""  # the first line, until it is decided
        self._decided = False
        self._mark = ""  # the opening fence, "" for none
        self._depth = _DEEPEST
        self._line = ""  # the beginning of a line that may be a fence
        self._inside_line = False  # the beginning of this line was returned
        self._inner = False  # in a block of the text
        self._behind: list[str] | None = None  # what follows a possible end of the text
        self._over = False

    def feed(self, text: str, /) -> Iterator[str]:
        """Return what certainly belongs to the text.

        Raises:
            UpstreamGarbled: the end of the text is ambiguous.
        """
        if not self._decided:
            text, self._first = self._first + text, ""
            if _BEGUN.match(text) and len(text) <= _MOST_HELD:
                self._first = text
                return
            text = self._open(text)
        if self._mark:
            text = "".join(self._lines(text))
        if text:
            yield text

    def flush(self) -> Iterator[str]:
        """Return what was held back and is not a fence."""
        if not self._decided:
            held, self._first = self._first, ""
            if _OPENING.match(held + "\n") and self._is_outer(held):
                return
        else:
            line, self._line = self._line, ""
            held = "".join(self._whole_line(line)) if line else ""
        if held:
            yield held

    def _open(self, text: str) -> str:
        """Decide what the first line is, and remove an opening fence."""
        self._decided = True
        opening = _OPENING.match(text)
        if opening is None or not self._is_outer(text):
            return text
        self._mark = opening[1]
        indent = text[: opening.start(1)].rpartition("\n")[2]
        self._depth = max(_DEEPEST, len(indent))
        return text[opening.end() :]

    def _is_outer(self, text: str) -> bool:
        opening = _OPENING.match(text + "\n")
        named = opening[2].strip().lower() if opening else ""
        return self._names is None or named in self._names

    def _lines(self, text: str) -> Iterator[str]:
        """Process a text line by line; the last line may continue."""
        for piece in LINE.findall(text):
            ended = piece[-1] in "\r\n"
            if self._inside_line:
                self._inside_line = not ended
                yield from self._put(piece)
                continue
            line, self._line = self._line + piece, ""
            if ended:
                yield from self._whole_line(line)
            elif _MAYBE_FENCE.match(line) and len(line) <= _MOST_HELD:
                self._line = line
            else:
                self._inside_line = True
                yield from self._put(line)

    def _whole_line(self, line: str) -> Iterator[str]:
        fence = _FENCE.match(line)
        if fence is None or not self._counts(fence):
            yield from self._put(line)
        elif self._behind is not None:
            yield from self._another(line, opens=bool(fence[2].strip()))
        elif fence[2].strip():
            self._inner = True
            yield line
        elif self._inner:
            self._inner = False
            yield line
        else:
            self._behind = [line]

    def _counts(self, fence: re.Match[str]) -> bool:
        """Tell whether a fence could close the outer one if it had no language."""
        return fence[1].startswith(self._mark) and fence.start(1) <= self._depth

    def _put(self, text: str) -> Iterator[str]:
        """Return a piece of the text, or hold it while it is uncertain."""
        if self._behind is None:
            yield text
        elif not self._over:
            self._behind.append(text)

    def _another(self, line: str, *, opens: bool) -> Iterator[str]:
        """Handle a fence behind a possible end: that was the end if this one opens."""
        assert self._behind is not None  # noqa: S101 - see _whole_line
        if opens or self._over:
            self._over, self._behind = True, []
            return
        between = "".join(self._behind[1:])
        if self._code and (not self._fenced or is_talk(between, announcing=True)):
            raise uncertain("mixes words and code that cannot be told apart")
        behind, self._behind = self._behind, None
        yield "".join((*behind, line))
