"""Take the fence away that models put around code, while the text streams."""

import re
from collections.abc import Iterator

_OPENING = re.compile(r"\s*(`{3,}|~{3,})[ \t]*([^`\r\n]*)(\r\n|\r|\n)")
_BEGUN = re.compile(r"\s*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^`\r\n]*\r?)\Z")
_MOST_HELD = 4096
MARKDOWN = frozenset({"markdown", "md"})


class Unfenced:
    """Stage[str, str]: text without one outer fence; other text is not altered.

    The first line is held back until it is known whether it opens a fence, and then
    every line that may be the closing one. Where the text is Markdown itself, `names`
    are the only languages whose fence is not part of it.
    """

    def __init__(self, names: frozenset[str] | None = None) -> None:
        self._names = names
        self._held = ""
        self._decided = False
        self._mark = ""  # the opening fence, "" for none
        self._at_line_start = True

    def feed(self, text: str, /) -> Iterator[str]:
        """Give what is certain to belong to the text."""
        text, self._held = self._held + text, ""
        if not self._decided:
            if _BEGUN.match(text) and len(text) <= _MOST_HELD:
                self._held = text
                return
            text = self._opened(text)
        if self._mark:
            kept = self._closing(text)
            if len(text) - kept <= _MOST_HELD:
                text, self._held = text[:kept], text[kept:]
        if text:
            self._at_line_start = text[-1] in "\r\n"
            yield text

    def flush(self) -> Iterator[str]:
        """Give what was held back and is no fence."""
        held, self._held = self._held, ""
        fence = self._mark or "```"
        bare = held.strip()
        if self._decided:
            dropped = bool(self._mark) and bare.startswith(fence)
        else:
            dropped = bool(_OPENING.match(held + "\n")) and self._is_outer(held)
        if held and not dropped:
            yield held

    def _opened(self, text: str) -> str:
        """Decide what the first line is, and take an opening fence away."""
        self._decided = True
        opening = _OPENING.match(text)
        if opening is None or not self._is_outer(text):
            return text
        self._mark = opening[1]
        return text[opening.end() :]

    def _is_outer(self, text: str) -> bool:
        opening = _OPENING.match(text + "\n")
        named = opening[2].strip().lower() if opening else ""
        return self._names is None or named in self._names

    def _closing(self, text: str) -> int:
        """Return where what may be the closing line begins, else the end."""
        bare = text.rstrip()
        before = bare.rstrip(self._mark[0])
        marks = len(bare) - len(before)
        if marks >= len(self._mark) or (marks and bare == text):
            start = before.rstrip(" \t")
            if self._begins_line(start):
                return len(start)
        start = text.rstrip(" \t")
        return len(start) if self._begins_line(start) else len(text)

    def _begins_line(self, before: str) -> bool:
        return before[-1] in "\r\n" if before else self._at_line_start
