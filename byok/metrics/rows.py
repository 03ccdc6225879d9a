"""Rows of numbers by their labels, of which there are never more than a limit.

What clients and upstreams call a model is theirs: a hostile name may be long, hold a
key or control characters, and there may be a new one in every request.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeAlias, TypeVar

from byok.escapes import escape

MOST_ROWS = 200
OTHER = "other"
_LONGEST = 120  # characters of a label
_LONGEST_READ = 1000  # characters of a name that are looked at

Labels: TypeAlias = tuple[str, ...]
Row = TypeVar("Row")


class Rows(Generic[Row]):
    """One row for each combination of labels; those that are too many share `other`.

    `make` makes an empty row, `hide` removes secrets from a label.
    """

    def __init__(
        self,
        make: Callable[[], Row],
        hide: Callable[[str], str] = str,
        limit: int = MOST_ROWS,
    ) -> None:
        self._make = make
        self._hide = hide
        self._limit = limit
        self._by_key: dict[Labels, Row] = {}
        self._by_labels: dict[Labels, Row] = {}

    def find(self, key: Labels) -> Row:
        """Return the row of these names, as clients and upstreams write them."""
        row = self._by_key.get(key)
        return self._find_short(key) if row is None else row

    def __iter__(self) -> Iterator[tuple[Labels, Row]]:
        """Give each row with its labels, which are safe to show."""
        return iter(self._by_labels.items())

    def _find_short(self, key: Labels) -> Row:
        short = tuple(name[:_LONGEST_READ] for name in key)
        if (row := self._by_key.get(short)) is not None:
            return row
        if len(self._by_key) >= self._limit - 1:
            return self._row_of((OTHER,) * len(key))
        # Two names may look the same once their secrets are hidden.
        row = self._row_of(tuple(map(self._label, short)))
        self._by_key[short] = row
        return row

    def _row_of(self, labels: Labels) -> Row:
        if (row := self._by_labels.get(labels)) is None:
            row = self._by_labels[labels] = self._make()
        return row

    def _label(self, name: str) -> str:
        return escape(self._hide(name))[:_LONGEST]
