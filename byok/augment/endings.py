"""Convert a model's text to the line ends of the file that it is inserted into."""

import re
from collections.abc import Iterator

_BREAK = re.compile(r"\r\n|\r|\n")


class Endings:
    """Stage[str, str] that ends every line with `ending`; "" changes nothing.

    `last` tells whether the text ends with a line end too; None keeps what the model
    wrote.
    """

    def __init__(self, ending: str, last: bool | None) -> None:
        self._ending = ending
        self._last = last
        self._held = ""  # line breaks that may be the end of the text
        self._said = False

    def feed(self, text: str, /) -> Iterator[str]:
        """Return everything but a line break at the end."""
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
        """Return the end of the last line."""
        held = self._convert(self._held)
        if self._last and not held and self._said:
            yield self._ending or "\n"
        elif held and self._last is not False:
            yield held

    def _convert(self, text: str) -> str:
        return _BREAK.sub(self._ending, text) if self._ending else text


class Trimmed:
    """Stage[str, str] that removes white space around the text."""

    def __init__(self) -> None:
        self._said = False
        self._held: list[str] = []

    def feed(self, text: str, /) -> Iterator[str]:
        """Return everything but white space at the ends."""
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
