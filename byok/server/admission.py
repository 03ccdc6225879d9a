"""How many answers may be in progress at once, and how they end when byok stops.

Limit. Each answer holds a connection to an upstream, a parsed conversation and a
buffer, and local servers answer a few requests at a time. So `streams` answers run and
`waiting` more queue in the order of their arrival, each for a limited time; all others
get a 503 with `Retry-After` at once, after which clients try again. Without a limit on
the queue, a client that repeats its requests would fill the memory while nothing is
answered. Completions do not queue (`wait=False`): a late one is useless. A request
waits for its turn in its conversation before it takes a slot; the other way round,
requests that wait for their turn would hold all slots.

Turns. Requests of one conversation are answered one at a time, in the order of their
arrival.

Stop. When byok stops, answers get `grace` seconds to end by themselves. Then each must
still send a last line with the reason, or clients report a network error. Cancelling
the tasks would not work: a cancelled task cannot await a write any more, and a
cancellation already means that the client is gone. So each answer runs inside an
`asyncio.timeout` without a deadline (a scope), and `stop` sets the deadline to now: the
answer's current await raises a `TimeoutError`, `raise_on_stop` turns it into
`NotReady`, and the answer ends like any other failed one. A scope that has expired is
not rescheduled, which would be a RuntimeError.

`raise_on_stop` is not part of `enter`, because an answer that is passed on byte for
byte leaves the first scope when its head has arrived, and enters another one for its
body.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct, field

from byok.core.errors import BadRequest, NotReady

if TYPE_CHECKING:
    from byok.protocols.augment.chat_request import ConversationPosition

_log = logging.getLogger(__name__)


class Gate:
    """Admits `streams` requests at a time; `waiting` more queue for up to `seconds`.

    `open` is the number of requests that have a slot.
    """

    def __init__(self, streams: int, waiting: int, seconds: float) -> None:
        self._slots = asyncio.Semaphore(streams)
        self._free_queue_slots = self._queue_limit = waiting
        self.open = 0
        self._seconds = seconds
        self._scopes: set[asyncio.Timeout] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = False
        self._grace_is_over = False  # the grace of answers

    @property
    def waiting(self) -> int:
        """How many requests wait for a slot."""
        return self._queue_limit - self._free_queue_slots

    @property
    def answering(self) -> int:
        """How many requests are being answered by a model."""
        return len(self._scopes)

    @asynccontextmanager
    async def enter(self, *, wait: bool = True) -> AsyncIterator[None]:
        """Hold a slot until the block ends; with `wait`, queue for a free one.

        Raises:
            NotReady: no slot became free in time, or byok is stopping.
        """
        if self.stopping:
            raise shutting_down()
        await self._acquire_slot(wait=wait)
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
        """Turn the stop of byok into an error that the client can still be sent.

        Raises:
            NotReady: byok is stopping; raised in the middle of the block.
        """
        try:
            async with asyncio.timeout(None) as scope:
                self._scopes.add(scope)
                self._idle.clear()
                if self._grace_is_over:  # it ended while the answer was in no scope
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

    async def stop(self, grace: float) -> None:
        """Wait `grace` seconds for answers, then end each with a last line."""
        self.stopping = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._idle.wait()
        self._grace_is_over = True
        for scope in self._scopes:
            end_now(scope)

    async def _acquire_slot(self, *, wait: bool) -> None:
        if not self._slots.locked():
            await self._slots.acquire()
            return
        if self._free_queue_slots <= 0 or not wait:
            raise _too_many_error()
        self._free_queue_slots -= 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
        except TimeoutError as error:
            raise _too_many_error() from error
        finally:
            self._free_queue_slots += 1


def end_now(scope: asyncio.Timeout) -> None:
    """Let a scope expire now, unless it has expired already."""
    if not scope.expired():
        scope.reschedule(asyncio.get_running_loop().time())


def shutting_down() -> NotReady:
    """Return the error of a request that the end of the daemon interrupts."""
    return NotReady("byok is shutting down.", code="shutting_down")


def _too_many_error() -> NotReady:
    return NotReady("Too many requests are in progress.", code="too_many_streams")


class _Answer(Struct, eq=False):
    """An answer of a conversation, waiting or in progress; `scope` can cancel it."""

    place: "ConversationPosition"
    scope: asyncio.Timeout
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Admission:
    """Admits the answers of models; the requests of a conversation take turns.

    Different conversations do not wait for each other, and sub-agents have their own.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._open: dict[str, list[_Answer]] = {}

    @asynccontextmanager
    async def enter(
        self,
        place: "ConversationPosition | None",
        on_wait: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[None]:
        """Wait until the answer may begin, and hold its slot until the block ends.

        An answer waits for its turn first, so that it occupies no slot meanwhile.
        `on_wait` is called if the conversation has earlier answers.

        Raises:
            NotReady: no slot became free in time, or byok is stopping.
            BadRequest: 409, a newer request replaced this one.
        """
        turn = self.turn(place, on_wait) if place else nullcontext()
        async with self.gate.raise_on_stop(), turn, self.gate.enter():
            yield

    @asynccontextmanager
    async def turn(
        self, place: "ConversationPosition", on_wait: Callable[[], None] = lambda: None
    ) -> AsyncIterator[None]:
        """Wait for the earlier answers of the conversation, and make later ones wait.

        `on_wait` is called if there are earlier ones.

        Raises:
            BadRequest: 409, a newer request replaced this one; raised while it waits
                or in the middle of the `async with` block.
        """
        queue = self._open.setdefault(place.conversation, [])
        earlier = [answer for answer in queue if not _end_superseded(answer, place)]
        try:
            async with asyncio.timeout(None) as scope:
                mine = _Answer(place, scope)
                queue.append(mine)
                try:
                    if earlier:
                        _log.info("a request waits for the turn before it")
                        on_wait()
                    for answer in earlier:
                        await answer.ended.wait()
                    yield
                finally:
                    mine.ended.set()
                    queue.remove(mine)
                    if not queue:
                        del self._open[place.conversation]
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise BadRequest(
                "A newer request in this conversation replaced this one.",
                code="superseded",
                status=409,
            ) from error


def _end_superseded(answer: _Answer, newer: "ConversationPosition") -> bool:
    """Cancel an answer if a newer request supersedes it; return whether it does.

    Two requests that continue the conversation after the same turn are two attempts at
    one turn, and the client reads only the newer one.
    """
    if newer.after != answer.place.after:
        return False
    end_now(answer.scope)
    return True
