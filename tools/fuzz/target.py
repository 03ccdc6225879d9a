"""What a fuzz target is: a check of any bytes, and what helps to find bad ones."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def _no_facts() -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Target:
    """`check` raises where the product is wrong; the rest is optional.

    Attributes:
        check: takes any bytes; it must not depend on earlier calls.
        seeds: inputs to start from.
        words: pieces of the input's language, for the mutator's dictionary.
        slow: a check that is run for one input of `SLOW_EVERY` only.
        opened: what must be open while inputs are checked.
        facts: figures to report at the end.
    """

    check: Callable[[bytes], None]
    seeds: Sequence[bytes] = ()
    words: Sequence[bytes] = ()
    slow: Callable[[bytes], None] | None = None
    opened: Callable[[], AbstractContextManager[Any]] = nullcontext
    facts: Callable[[], dict[str, Any]] = _no_facts


class Draw:
    """Reads choices out of bytes; at the end of the bytes every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def empty(self) -> bool:
        return self._at >= len(self._data)

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def upto(self, most: int) -> int:
        """Draw a number from 0 to `most`, which is below 65,536."""
        number = self.byte() if most < 256 else self.byte() * 256 + self.byte()
        return number % (most + 1)

    def of(self, choices: Sequence[T]) -> T:
        return choices[self.upto(len(choices) - 1)]

    def one_in(self, many: int) -> bool:
        return self.upto(many - 1) == many - 1

    def raw(self, most: int) -> bytes:
        """Draw a few bytes."""
        size = self.upto(most)
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece

    def rest(self) -> bytes:
        rest, self._at = self._data[self._at :], len(self._data)
        return rest

    def places(self, many: int) -> list[int]:
        """Draw places to cut at, for `cut`."""
        return [self.upto(4095) for _ in range(self.upto(many))]
