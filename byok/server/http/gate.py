"""How many answers may be in progress at once, and how they end when byok stops.

Limit. Each answer holds a connection to an upstream, a parsed conversation and a
buffer, and local servers answer a few requests at a time. So `streams` answers run and
`waiting` more queue in the order of their arrival, each for a limited time; the rest
get a 503 with `Retry-After` at once, which clients repeat. Without a limit on the
queue, a client that repeats its requests would fill the memory while nothing is
answered. Completions do not queue (`wait=False`): one that comes late is of no use. A
request takes its turn in its conversation before its place here
(`server/admission.py`); the other way round, requests that wait for a turn would hold
all places.

Stop. When byok stops, answers get `grace` seconds to end by themselves. Then each must
still send a last line with the reason, or clients report a network error. Cancelling
the tasks would not do: a cancelled task cannot await a write any more, and cancellation
already means that the client is gone. So each answer runs inside an `asyncio.timeout`
without a deadline, and `stop` sets the deadline to now: a `TimeoutError` comes out at
the answer's current await, `raise_on_stop` turns it into `NotReady`, and the answer is
ended like any other failed one. A scope that has expired is left alone: to reschedule
it is a RuntimeError.

`raise_on_stop` is not part of `enter`, because an answer that is passed on byte for
byte leaves the first scope when its head has arrived and enters another one for its
body.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from byok.core.errors import NotReady


class Gate:
    """Admits `streams` requests at a time; `waiting` more queue up to `seconds`.

    `open` is the number of those that have a place.
    """

    def __init__(self, streams: int, waiting: int, seconds: float) -> None:
        self._slots = asyncio.Semaphore(streams)
        self._room = self._most_waiting = waiting
        self.open = 0
        self._seconds = seconds
        self._scopes: set[asyncio.Timeout] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = False
        self._is_over = False  # the grace of answers
        self._on_stop: list[Callable[[], None]] = []

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return self._most_waiting - self._room

    @property
    def answering(self) -> int:
        """How many requests are being answered by a model."""
        return len(self._scopes)

    @asynccontextmanager
    async def enter(self, *, wait: bool = True) -> AsyncIterator[None]:
        """Hold a place while an answer is made; `wait` for one that gets free.

        Raises:
            NotReady: there was no place in time, or byok is stopping.
        """
        if self.stopping:
            raise shutting_down()
        await self._enter(wait=wait)
        self.open += 1
        try:
            if self.stopping:  # it began while this one waited
                raise shutting_down()
            yield
        finally:
            self.open -= 1
            self._slots.release()

    @asynccontextmanager
    async def raise_on_stop(self) -> AsyncIterator[None]:
        """Turn the end of the daemon into an error that can still be told.

        Raises:
            NotReady: byok is stopping; raised in the middle of the body.
        """
        try:
            async with asyncio.timeout(None) as scope:
                self._scopes.add(scope)
                self._idle.clear()
                if self._is_over:  # it was ended between two scopes
                    end_now(scope)
                try:
                    yield
                finally:
                    self._scopes.discard(scope)
                    if not self._scopes:
                        self._idle.set()
        except TimeoutError as error:
            if not self.stopping:
                raise
            raise shutting_down() from error

    def on_stop(self, act: Callable[[], None]) -> None:
        """Call `act` when byok begins to stop: for what has no place here."""
        self._on_stop.append(act)

    async def stop(self, grace: float) -> None:
        """Let answers end for `grace` seconds, then end each with a last line."""
        self.stopping = True
        self.end_others()
        await self._all_ended(grace)
        self._is_over = True
        for scope in self._scopes:
            end_now(scope)

    def end_others(self) -> None:
        """End what has no place here and would never end by itself."""
        for act in self._on_stop:
            act()

    async def _all_ended(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def _enter(self, *, wait: bool) -> None:
        if not self._slots.locked():
            await self._slots.acquire()
            return
        if self._room <= 0 or not wait:
            raise _too_many()
        self._room -= 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
        except TimeoutError as error:
            raise _too_many() from error
        finally:
            self._room += 1


def end_now(scope: asyncio.Timeout) -> None:
    """Let a scope expire; one that has is on its way out already."""
    if not scope.expired():
        scope.reschedule(asyncio.get_running_loop().time())


def shutting_down() -> NotReady:
    """Return the error for an answer that the end of the daemon cut."""
    return NotReady("byok is shutting down.", code="shutting_down")


def _too_many() -> NotReady:
    return NotReady("Too many requests are in progress.", code="too_many_streams")
