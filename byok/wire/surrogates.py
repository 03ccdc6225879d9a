"""Lone surrogates: JavaScript strings are UTF-16, and may be cut inside an emoji."""

_HIGH = range(0xD800, 0xDC00)


def join_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class SurrogateBuffer:
    """Holds a trailing high surrogate until the next piece brings the low one."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the text that is complete now."""
        if not self._held and piece.isascii():
            return piece
        text = self._held + piece
        self._held = ""
        if text and ord(text[-1]) in _HIGH:
            text, self._held = text[:-1], text[-1]
        return join_surrogates(text)

    def flush(self) -> str:
        """Return what was held: a high surrogate alone becomes U+FFFD."""
        held, self._held = self._held, ""
        return join_surrogates(held)
