"""Reuse a completion that was shown, while the user types along it."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from byok.augment.completion.cursor import Cursor

MOST = 128
_TELLING = 1000  # characters; no two places share so many


@dataclass(frozen=True, slots=True)
class _Prediction:
    cursor: Cursor
    text: str


class Shown:
    """The last completion for each of the newest keys, such as model and file."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, _Prediction] = OrderedDict()

    def keep(self, key: Hashable, cursor: Cursor, text: str) -> None:
        """Store a completion; an empty one is ignored."""
        if not text:
            return
        self._found[key] = _Prediction(cursor, text)
        self._found.move_to_end(key)
        if len(self._found) > self._most:
            self._found.popitem(last=False)

    def rest(self, key: Hashable, cursor: Cursor) -> str:
        """Return the rest of the completion if its beginning was typed, else ""."""
        shown = self._found.get(key)
        if shown is None or shown.cursor.after != cursor.after:
            return ""
        return _rest(shown, cursor.before)


def _rest(shown: _Prediction, before: str) -> str:
    """Return the part of the completion that was not typed yet, "" at another place.

    A client sends a window of the file: typing moves it, but most of it stays the same.
    """
    seen, text = shown.cursor.before, shown.text
    for typed in range(max(0, len(before) - len(seen)), len(text)):
        same = len(before) - typed
        if same < len(seen) and same < _TELLING:
            continue
        if before.endswith(text[:typed]) and seen.endswith(before[:same]):
            return text[typed:] if text[typed:].strip() else ""
    return ""
