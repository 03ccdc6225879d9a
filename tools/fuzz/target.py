"""Fuzz targets: a check of arbitrary bytes, with seeds and words for the mutator."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def _no_facts() -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Target:
    """A fuzz target; `check` raises if the product is wrong, the rest is optional.

    Attributes:
        check: takes any bytes; it must not depend on earlier calls.
        seeds: inputs to start from.
        words: pieces of the input's language, for the mutator's dictionary.
        slow: a check that is run for one input of `SLOW_EVERY` only.
        opened: a context, such as a daemon, in which inputs are checked.
        facts: figures to report at the end.
    """

    check: Callable[[bytes], None]
    seeds: Sequence[bytes] = ()
    words: Sequence[bytes] = ()
    slow: Callable[[bytes], None] | None = None
    opened: Callable[[], AbstractContextManager[Any]] = nullcontext
    facts: Callable[[], dict[str, Any]] = _no_facts


class Draw:
    """Reads choices from bytes; after the last byte, every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    @property
    def empty(self) -> bool:
        return self._offset >= len(self._data)

    def byte(self) -> int:
        self._offset += 1
        return self._data[self._offset - 1] if self._offset <= len(self._data) else 0

    def upto(self, maximum: int) -> int:
        """Draw a number from 0 to `maximum`, which is below 65,536."""
        number = self.byte() if maximum < 256 else self.byte() * 256 + self.byte()
        return number % (maximum + 1)

    def of(self, choices: Sequence[T]) -> T:
        return choices[self.upto(len(choices) - 1)]

    def one_in(self, many: int) -> bool:
        return self.upto(many - 1) == many - 1

    def raw(self, max_size: int) -> bytes:
        """Draw up to `max_size` bytes."""
        size = self.upto(max_size)
        piece = self._data[self._offset : self._offset + size]
        self._offset += size
        return piece

    def rest(self) -> bytes:
        data, self._offset = self._data[self._offset :], len(self._data)
        return data

    def places(self, many: int) -> list[int]:
        """Draw offsets to cut a stream at, for `cut`."""
        return [self.upto(4095) for _ in range(self.upto(many))]
