"""Give a model's text the line endings of the file it goes into."""

import re
from collections.abc import Iterator

_BREAK = re.compile(r"\r\n|\r|\n")


class Endings:
    """Stage[str, str]: every line ends with `ending`; "" leaves them as they are.

    `last` says whether the whole text ends with one too; None leaves that as it is.
    """

    def __init__(self, ending: str, last: bool | None) -> None:
        self._ending = ending
        self._last = last
        self._held = ""  # a line break whose place is not known yet
        self._said = False

    def feed(self, text: str, /) -> Iterator[str]:
        """Give all but a line break at the end."""
        text, self._held = self._held + text, ""
        if text.endswith("\r\n"):
            cut = len(text) - 2
        else:
            cut = len(text) - text.endswith(("\r", "\n"))
        text, self._held = text[:cut], text[cut:]
        if text:
            self._said = True
            yield self._convert(text)

    def flush(self) -> Iterator[str]:
        """End the last line as it should be."""
        held = self._convert(self._held)
        if self._last and not held and self._said:
            yield self._ending or "\n"
        elif held and self._last is not False:
            yield held

    def _convert(self, text: str) -> str:
        return _BREAK.sub(self._ending, text) if self._ending else text


class Trimmed:
    """Stage[str, str]: text without white space around it."""

    def __init__(self) -> None:
        self._said = False
        self._held: list[str] = []

    def feed(self, text: str, /) -> Iterator[str]:
        """Give all but white space at the ends."""
        if not self._said:
            text = text.lstrip()
        bare = text.rstrip()
        if bare:
            self._said = True
            yield "".join((*self._held, bare))
            self._held.clear()
        if self._said and len(bare) < len(text):
            self._held.append(text[len(bare) :])

    def flush(self) -> Iterator[str]:
        """Drop white space at the end."""
        self._held.clear()
        return iter(())
