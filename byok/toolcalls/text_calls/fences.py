"""Whether a text that arrives in pieces is inside a code fence of Markdown."""

_MARK = "```"
_LONGEST = 8  # characters of a line that matter


class CodeFence:
    """Follows the lines of a text; a line that begins with three backticks toggles."""

    def __init__(self) -> None:
        self._line = ""  # the beginning of the line that is not complete
        self._inside = False

    @property
    def is_open(self) -> bool:
        """Whether the end of the text is in a fence, or in the line that opens one."""
        return self._inside or self._line.lstrip().startswith(_MARK)

    def note(self, text: str) -> None:
        """Follow the next piece of the text."""
        first, *lines = text.split("\n")
        self._line = (self._line + first)[:_LONGEST]
        for line in lines:
            if self._line.lstrip().startswith(_MARK):
                self._inside = not self._inside
            self._line = line[:_LONGEST]
