"""Collections of bounded size: a map of recent entries, seen subjects, batches."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedMap(Generic[K, V]):
    """A map that evicts the least recently used entries.

    Several threads may use it: at worst, it evicts a little too much or too little.
    """

    def __init__(self, limit: int, weigh: Callable[[K, V], int] | None = None) -> None:
        """Keep `limit` entries or, with `weigh`, a total weight of `limit`.

        The newest entry always stays.
        """
        self._limit = limit
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of a key and mark the key as used; None if there is none."""
        value = self._entries.get(key)
        if value is not None:
            try:
                self._entries.move_to_end(key)
            except KeyError:
                return value  # another thread just removed it
        return value

    def pop(self, key: K) -> V | None:
        """Remove a key; return its value, None if there is none."""
        value = self._entries.pop(key, None)
        if self._weigh is not None and value is not None:
            self._weight -= self._weigh(key, value)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key)
        self._entries[key] = value
        if self._weigh is None:
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)
            return
        self._weight += self._weigh(key, value)
        while self._weight > self._limit and len(self._entries) > 1:
            self._weight -= self._weigh(*self._entries.popitem(last=False))

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> list[tuple[K, V]]:
        """Return the entries, the most recently used one last."""
        return list(self._entries.items())

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._weight = 0


class SaidOnce:
    """Remembers about which subjects something was logged, to log it once for each.

    Subjects may come from a stranger, who could send new ones forever. So no more than
    `limit` of them count as new. With `forgets`, the latest `limit` are remembered
    instead, and an older one may be logged again.
    """

    def __init__(self, limit: int, *, forgets: bool = False) -> None:
        self._limit = limit
        self._forgets = forgets
        self._said = BoundedMap[Hashable, bool](limit)

    def is_new(self, subject: Hashable) -> bool:
        """Return True at the first call with a subject, as far as the limit allows."""
        is_full = len(self._said) >= self._limit and not self._forgets
        if subject in self._said or is_full:
            return False
        self._said[subject] = True
        return True


def split_into_batches(
    items: Iterable[T],
    size_of: Callable[[T], int],
    *,
    max_size: int,
    max_items: int = sys.maxsize,
) -> Iterator[list[T]]:
    """Yield items in batches; a batch ends with the item that reaches either limit."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if len(batch) >= max_items or size >= max_size:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
