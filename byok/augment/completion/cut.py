"""Make a model's text fit at the cursor, and say when enough of it came."""

from byok.augment.completion.block import Extent, IndentedBlock, OneLine
from byok.augment.completion.cursor import Cursor
from byok.augment.completion.repeats import Unrepeated, without_suffix
from byok.augment.positions import line_ending, normal
from byok.stage import Stage, chain

MOST_CHARS = 4000


class Cutter:
    """Takes text as it streams; `text` is what of it may stand at the cursor.

    Nothing is added but the line endings of the file, and where the stream was cut
    into pieces makes no difference.
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
        """Whether further text would change nothing."""
        return self._extent.enough or self._length >= MOST_CHARS

    def feed(self, text: str) -> None:
        """Take more text."""
        text, self._return = self._return + text, ""
        if text.endswith("\r"):
            text, self._return = text[:-1], "\r"
        for piece in self._stage.feed(normal(text)):
            self._take(piece)

    def text(self, *, whole: bool) -> str:
        """Return what fits; where more was to come (not `whole`), only whole lines."""
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
