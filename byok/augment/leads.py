"""Remove announcements and quotation marks around a short text."""

import re
from collections.abc import Iterator

from byok.augment.fences import LINE
from byok.augment.talk import is_lead, may_become_lead

_MOST_LEAD = 200
_COLONS = (":", "：")
_BLANKS = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "«": "»", "「": "」"}


class Unannounced:
    """Stage[str, str] that removes a first line that only announces the text.

    With `strict`, this is any line that ends in a colon and is followed by more.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._held: str | None = ""  # None once it is decided
        self._lead = ""  # removed, as long as nothing follows it

    def feed(self, text: str, /) -> Iterator[str]:
        """Return the text once it is certain to be no announcement."""
        if self._held is None:
            yield text
            return
        self._held += text
        if not self._lead:
            start = len(self._held) - len(self._held.lstrip())
            line = (LINE.match(self._held, start) or [""])[0]
            if self._may_lead(line) and line[-1:] not in ("\n", "\r"):
                return
            if is_lead(line) or (self._strict and line.rstrip().endswith(_COLONS)):
                self._lead, self._held = line, self._held[start + len(line) :]
        if self._lead:
            if not self._held.strip():
                return
            self._held, self._lead = _BLANKS.sub("", self._held, count=1), ""
        held, self._held = self._held, None
        yield held

    def flush(self) -> Iterator[str]:
        """Return what was held; an announcement alone only if it may be the text."""
        held, self._held = self._held, None
        if self._lead and self._strict:
            yield self._lead
        elif held and not self._lead and (self._strict or not is_lead(held)):
            yield held

    def _may_lead(self, line: str) -> bool:
        """Tell whether the beginning of a line may be that of an announcement."""
        return len(line) <= _MOST_LEAD and (self._strict or may_become_lead(line))


class Unquoted:
    """Stage[str, str] that removes quotation marks around the whole text."""

    def __init__(self) -> None:
        self._held: str | None = ""  # None once it is decided

    def feed(self, text: str, /) -> Iterator[str]:
        """Return text that does not begin with a quotation mark."""
        if self._held is None:
            yield text
            return
        self._held += text
        bare = self._held.lstrip()
        if bare and bare[0] not in _QUOTES:
            held, self._held = self._held, None
            yield held

    def flush(self) -> Iterator[str]:
        """Return text that began with a quotation mark."""
        held, self._held = self._held or "", None
        bare = held.strip()
        if bare:
            end = _QUOTES[bare[0]]
            inner = bare[1:-1]
            around = bare.endswith(end) and len(bare) > 1 and end not in inner
            yield inner if around else held
