"""Stages: transform a stream of items into a stream of other items, without I/O."""

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

In = TypeVar("In")
Mid = TypeVar("Mid")
Out = TypeVar("Out")
In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)


class Stage(Protocol[In_contra, Out_co]):
    """A step of a pipeline: feed it items as they arrive, flush it once at the end."""

    def feed(self, item: In_contra, /) -> Iterable[Out_co]:
        """Consume one item, and return all items that are complete now."""
        ...

    def flush(self) -> Iterable[Out_co]:
        """Return all items that were buffered."""
        ...


class chain(Generic[In, Mid, Out]):
    """Two stages in a row, as one stage."""

    def __init__(self, first: Stage[In, Mid], second: Stage[Mid, Out]) -> None:
        self._first = first
        self._second = second

    def feed(self, item: In, /) -> Iterable[Out]:
        """Feed the first stage, and the second one with its output."""
        out: list[Out] = []
        try:
            for mid in self._first.feed(item):
                out += self._second.feed(mid)
        except Exception as error:
            return then_raise(out, error)
        return out

    def flush(self) -> Iterator[Out]:
        """Flush the first stage into the second one, then flush the second one."""
        for mid in self._first.flush():
            yield from self._second.feed(mid)
        yield from self._second.flush()


def then_raise(items: Iterable[Out], error: Exception) -> Iterator[Out]:
    """Yield the items that were complete before a failure, then raise it."""
    yield from items
    raise error


def drain(stage: Stage[In, Out], items: Iterable[In]) -> Iterator[Out]:
    """Feed all items to a stage, flush it, and return its output."""
    for item in items:
        yield from stage.feed(item)
    yield from stage.flush()
