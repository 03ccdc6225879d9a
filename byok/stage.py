"""A Stage turns a stream of one thing into a stream of another, without I/O."""

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

In = TypeVar("In")
Mid = TypeVar("Mid")
Out = TypeVar("Out")
In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)


class Stage(Protocol[In_contra, Out_co]):
    """Feed it items as they arrive; flush it once when there are no more."""

    def feed(self, item: In_contra, /) -> Iterable[Out_co]:
        """Accept one item and give whatever is now complete."""
        ...

    def flush(self) -> Iterable[Out_co]:
        """Give whatever was still being held back."""
        ...


class chain(Generic[In, Mid, Out]):
    """Two stages as one."""

    def __init__(self, first: Stage[In, Mid], second: Stage[Mid, Out]) -> None:
        self._first = first
        self._second = second

    def feed(self, item: In, /) -> Iterable[Out]:
        """Feed the first stage, and the second with what it gives."""
        out: list[Out] = []
        try:
            for mid in self._first.feed(item):
                out += self._second.feed(mid)
        except Exception as error:
            return then_raise(out, error)
        return out

    def flush(self) -> Iterator[Out]:
        """Flush the first into the second, then the second."""
        for mid in self._first.flush():
            yield from self._second.feed(mid)
        yield from self._second.flush()


def then_raise(items: Iterable[Out], error: Exception) -> Iterator[Out]:
    """Give what was ready before a failure, and fail only after it."""
    yield from items
    raise error


def drain(stage: Stage[In, Out], items: Iterable[In]) -> Iterator[Out]:
    """Run a whole stage over items already at hand."""
    for item in items:
        yield from stage.feed(item)
    yield from stage.flush()
