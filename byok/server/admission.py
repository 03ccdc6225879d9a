"""Admission of answers: first a turn in the conversation, then a free place."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from byok.augment.conversation import Place
from byok.server.conversations import Conversations
from byok.server.http.gate import Gate


@dataclass(frozen=True, slots=True)
class Admission:
    """Admits the answers of models."""

    gate: Gate
    conversations: Conversations

    @asynccontextmanager
    async def enter(
        self, place: Place | None, on_wait: Callable[[], None] = lambda: None
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
