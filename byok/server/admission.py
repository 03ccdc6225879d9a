"""Admission of answers: a turn in their conversation first, then a free place."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from msgspec import Struct, field

from byok.core.errors import BadRequest
from byok.protocols.augment.chat_request import ConversationPlace
from byok.server.http.gate import Gate, end_now

# Requests of one conversation are answered one at a time, in their order.


_log = logging.getLogger(__name__)


class _Answer(Struct, eq=False):
    place: ConversationPlace
    scope: asyncio.Timeout
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Conversations:
    """Makes the requests of a conversation take turns.

    Different conversations do not wait for each other, and sub-agents have their own.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[_Answer]] = {}

    def turn(
        self,
        place: ConversationPlace | None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> AbstractAsyncContextManager[None]:
        """Wait for the earlier answers of the conversation, and hold back later ones.

        `on_wait` is called where there are any.

        Raises:
            BadRequest: 409, a newer request took this one's place; raised while it
                waits or in the middle of the body.
        """
        return nullcontext() if place is None else self._turn(place, on_wait)

    @asynccontextmanager
    async def _turn(
        self, place: ConversationPlace, on_wait: Callable[[], None]
    ) -> AsyncIterator[None]:
        line = self._open.setdefault(place.conversation, [])
        earlier = [answer for answer in line if not _end_superseded(answer, place)]
        try:
            async with asyncio.timeout(None) as scope:
                mine = _Answer(place, scope)
                line.append(mine)
                try:
                    if earlier:
                        _log.info("a request waits for the turn before it")
                        on_wait()
                    for answer in earlier:
                        await answer.over.wait()
                    yield
                finally:
                    mine.over.set()
                    line.remove(mine)
                    if not line:
                        del self._open[place.conversation]
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise _superseded_error() from error


def _end_superseded(answer: _Answer, by: ConversationPlace) -> bool:
    """Cancel an answer that a newer request supersedes; tell whether it does."""
    if by.after != answer.place.after:
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
        place: ConversationPlace | None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[None]:
        """Wait until the answer may begin, and hold its place until the block ends.

        An answer waits for its turn first: it keeps no place from others meanwhile.
        `on_wait` is called where there are earlier answers of the conversation.

        Raises:
            NotReady: there was no place in time, or byok is stopping.
            BadRequest: 409, a newer request took this one's place.
        """
        async with (
            self.gate.raise_on_stop(),
            self.conversations.turn(place, on_wait),
            self.gate.enter(),
        ):
            yield
