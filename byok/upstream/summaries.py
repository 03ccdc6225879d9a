"""Summaries of what no longer fits into the context window, written by a model."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from byok.core.bounded import BoundedMap
from byok.core.chat import Message
from byok.core.errors import ByokError, ContextLengthExceeded
from byok.core.prompts.prompt_set import PromptSet, shipped_prompts
from byok.core.truncate import truncate_middle
from byok.upstream.base import Destination
from byok.upstream.short_question import answer_of
from byok.upstream.window.transcript import instruction, outline, transcript

_log = logging.getLogger(__name__)
_MAX_KEPT = 64
_INPUT = 0.75  # of the room that the conversation's own model has
_TRIES = 3

# Called with who answers the conversation, what is left out of it, how heavy its
# model's prompts may be in bytes, and the longest summary in characters.
Summarise: TypeAlias = Callable[
    [Destination, Sequence[Message], int, int], Awaitable[str]
]


class Summariser:
    """Writes summaries, and caches them: the same messages are summarised once.

    The model `wanted` writes them (`find` routes to it), else the conversation's own
    model. After a failure it is not asked for `pause` seconds; until then an outline
    without a model takes the place of the summary.
    """

    def __init__(
        self,
        wanted: str,
        find: Callable[[str], Awaitable[Destination]],
        prompts: PromptSet | None = None,
        *,
        seconds: float = 60.0,
        pause: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wanted = wanted
        self._find = find
        self._prompts = prompts or shipped_prompts()
        self._seconds = seconds
        self._pause = pause
        self._clock = clock
        self._asked_again = BoundedMap[str, float](_MAX_KEPT)  # model -> when
        self._kept = BoundedMap[bytes, str](_MAX_KEPT)

    async def __call__(
        self, asker: Destination, dropped: Sequence[Message], room: int, longest: int
    ) -> str:
        """Return a summary of at most `longest` characters; see Summarise."""
        room = int(room * _INPUT)
        key = await asyncio.to_thread(_digest, dropped, room)
        if (kept := self._kept.get(key)) is not None:
            return kept
        name = self._wanted or f"byok:{asker.upstream.name}:{asker.model}"
        if self._clock() < (self._asked_again.get(name) or 0.0):
            return await asyncio.to_thread(outline, dropped, longest)
        try:
            async with asyncio.timeout(self._seconds):
                writer = await self._find(self._wanted) if self._wanted else asker
                said = await self._write(writer, dropped, room, longest)
        except (ByokError, TimeoutError) as error:
            self._asked_again[name] = self._clock() + self._pause
            reason = error.log_text if isinstance(error, ByokError) else "too slow"
            _log.warning(
                "not asking %.80s for summaries of long conversations for now: %s",
                name,
                reason,
            )
            return await asyncio.to_thread(outline, dropped, longest)
        summary = self._kept[key] = truncate_middle(said, longest)
        return summary

    async def _write(
        self, writer: Destination, dropped: Sequence[Message], room: int, longest: int
    ) -> str:
        """Ask for a summary; of less text, if the writer's window is smaller."""
        told = instruction(longest, self._prompts)
        for left in reversed(range(_TRIES)):
            try:
                text = await asyncio.to_thread(transcript, dropped, room)
                return await answer_of(writer, told, text)
            except ContextLengthExceeded as error:
                if not left:
                    raise
                # Two bytes a token are fewer than any text has.
                room = min(room // 2, 2 * error.window if error.window else room)
        raise AssertionError("the last try returns or raises")


def _digest(dropped: Sequence[Message], room: int) -> bytes:
    text = transcript(dropped, room)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()
