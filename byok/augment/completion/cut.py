"""Cut a model's text so that it fits at the cursor, and tell when enough arrived."""

from byok.augment.completion.block import Extent, IndentedBlock, OneLine
from byok.augment.completion.cursor import Cursor
from byok.augment.completion.repeats import Unrepeated, without_suffix
from byok.augment.positions import line_ending, normal
from byok.stage import Stage, chain

MOST_CHARS = 4000


class Cutter:
    """Takes text while it streams; `text` returns the part that fits at the cursor.

    Only line ends are changed, to those of the file. How the stream was sliced makes no
    difference.
    """

    def __init__(
        self, cursor: Cursor, unfence: Stage[str, str], *, one_line: bool = False
    ) -> None:
        self._cursor = cursor
        self._ending = line_ending(cursor.before, cursor.after)
        self._stage = chain(unfence, Unrepeated(cursor))
        self._extent = _extent(cursor, one_line=one_line)
        self._return = ""  # a CR that may be the first half of a line's end
        self._length = 0

    @property
    def enough(self) -> bool:
        """Whether more text would change nothing."""
        return self._extent.enough or self._length >= MOST_CHARS

    def feed(self, text: str) -> None:
        """Take more text."""
        text, self._return = self._return + text, ""
        if text.endswith("\r"):
            text, self._return = text[:-1], "\r"
        for piece in self._stage.feed(normal(text)):
            self._take(piece)

    def text(self, *, whole: bool) -> str:
        """Return the part that fits; only complete lines if it is not `whole`."""
        if whole and not self.enough:
            for piece in self._stage.flush():
                self._take(piece)
        cut = self._extent.take(whole=whole or self._length >= MOST_CHARS)
        found = without_suffix(cut, self._cursor.tail)
        if not found.strip():
            return ""
        return found.replace("\n", self._ending) if self._ending else found

    def _take(self, piece: str) -> None:
        if not self.enough:
            piece = piece[: MOST_CHARS - self._length]
            self._length += len(piece)
            self._extent.feed(piece)


def _extent(cursor: Cursor, *, one_line: bool) -> Extent:
    if one_line or cursor.one_line:
        return OneLine()
    if cursor.rest.strip():
        return OneLine(f"\n{cursor.line}")
    return IndentedBlock(cursor)
