"""Admission of answers: each waits for its turn in its conversation, then for a slot.

Requests of one conversation are answered one at a time, in the order of their arrival.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from msgspec import Struct, field

from byok.core.errors import BadRequest
from byok.protocols.augment.chat_request import ConversationPosition
from byok.server.http.gate import Gate, end_now

_log = logging.getLogger(__name__)


class _Answer(Struct, eq=False):
    """An answer of a conversation, waiting or in progress; `scope` can cancel it."""

    place: ConversationPosition
    scope: asyncio.Timeout
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Conversations:
    """Makes the requests of a conversation take turns.

    Different conversations do not wait for each other, and sub-agents have their own.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[_Answer]] = {}

    def turn(
        self,
        place: ConversationPosition | None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> AbstractAsyncContextManager[None]:
        """Wait for the earlier answers of the conversation, and make later ones wait.

        `on_wait` is called if there are earlier ones.

        Raises:
            BadRequest: 409, a newer request replaced this one; raised while it waits
                or in the middle of the `async with` block.
        """
        return nullcontext() if place is None else self._turn(place, on_wait)

    @asynccontextmanager
    async def _turn(
        self, place: ConversationPosition, on_wait: Callable[[], None]
    ) -> AsyncIterator[None]:
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
            raise _superseded_error() from error


def _end_superseded(answer: _Answer, newer: ConversationPosition) -> bool:
    """Cancel an answer if a newer request supersedes it; return whether it does.

    Two requests that continue the conversation after the same turn are two attempts at
    one turn, and the client reads only the newer one.
    """
    if newer.after != answer.place.after:
        return False
    end_now(answer.scope)
    return True


def _superseded_error() -> BadRequest:
    return BadRequest(
        "A newer request in this conversation replaced this one.",
        code="superseded",
        status=409,
    )


class Admission(Struct, frozen=True):
    """Admits the answers of models."""

    gate: Gate
    conversations: Conversations

    @asynccontextmanager
    async def enter(
        self,
        place: ConversationPosition | None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[None]:
        """Wait until the answer may begin, and hold its slot until the block ends.

        An answer waits for its turn first, so that it occupies no slot meanwhile.
        `on_wait` is called if the conversation has earlier answers.

        Raises:
            NotReady: no slot became free in time, or byok is stopping.
            BadRequest: 409, a newer request replaced this one.
        """
        async with (
            self.gate.raise_on_stop(),
            self.conversations.turn(place, on_wait),
            self.gate.enter(),
        ):
            yield
