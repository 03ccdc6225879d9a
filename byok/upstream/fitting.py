"""Conversations that are made to fit a window, the same way in every turn.

Conversations are compacted in large steps. When one exceeds the window it is cut to 60
% of the room (`LOW_WATER` in `upstream/window/compaction.py`), and every later turn
gets the same replacement for the same beginning. Cutting a little in each turn would
keep more of the history, but it changes the start of the prompt each time, and the
upstream's prompt cache would never be used. So above the low-water mark a known
compaction is applied even if the whole conversation would fit again by what was learned
since: do not optimise that away.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import ChatRequest, Message, Role
from byok.core.events import Notice
from byok.core.threads import Runner, inline
from byok.upstream.window.compaction import (
    LOW_WATER,
    Compaction,
    Compactions,
    digests,
    less_context,
    plan,
    shorter_system,
)
from byok.upstream.window.estimate import Weigh, weigh_tools

_log = logging.getLogger(__name__)
_MANY_MESSAGES, _LARGE = 500, 500_000  # bytes
_LEAST_SYSTEM = 1000  # bytes; of less, nothing would be left to follow

# Summarises messages for a model: the model, the messages, the room, the most bytes.
SummariseFor: TypeAlias = Callable[[str, Sequence[Message], int, int], Awaitable[str]]


class Fitted(Struct, frozen=True):
    """A request that fits as well as it can; `fixed` and `weight` are in bytes.

    `fixed` is what is not shortened further, the tools and the system message, and part
    of `weight`. `is_new` means that more was cut than in the turn before, and
    `cuts_system` that the system message left no room for anything else. `is_counted`:
    the upstream counts the tokens of just what was weighed. `notice` is for the user.
    """

    chat: ChatRequest
    fixed: int
    weight: int
    is_new: bool = False
    cuts_system: bool = False
    is_counted: bool = False
    notice: Notice | None = None


class ConversationFitter:
    """Makes the conversations of one upstream fit, and remembers how it did."""

    def __init__(self, name: str, weigh: Weigh, summarise: SummariseFor) -> None:
        self._name = name
        self._weigh = weigh
        self._summarise = summarise
        self._compactions = Compactions()

    async def fit(self, chat: ChatRequest, model: str, room: int) -> Fitted:
        """Fit a conversation into `room` bytes, if it can; 0 is unlimited.

        The code that byok added to the question gets the room that is left.
        """
        tools = weigh_tools(chat.tools)
        system, body = _split(chat)
        is_full = 0 < room <= tools + self.sum(system)
        if cuts := is_full and room - tools > 2 * _LEAST_SYSTEM:
            system = self._cut_system(system, (room - tools) // 2)
            chat = replace(chat, messages=(*system, *body))
        fixed = tools + self.sum(system)
        weight, room = self.sum(body), room - fixed
        whole = Fitted(chat, fixed, fixed + weight, cuts_system=cuts)
        if room <= 0 or weight <= room * LOW_WATER:
            return whole
        if weight <= room and not self._compactions.knows(model):
            return whole
        run = _run_for(len(body), weight)
        lengths = self._compactions.lengths(model)
        beginnings = await run(partial(digests, body, lengths))
        known = self._compactions.find(model, beginnings) or Compaction(0, ())
        compaction, now = known, known.apply(body)
        bare = less_context(body, sys.maxsize)  # without any retrieved code
        if self.sum(known.apply(bare)) > room:
            compaction = await self._compact(chat, model, bare, known, room, run)
            now = compaction.apply(body)
        if (excess := self.sum(now) - room) > 0:
            now = less_context(now, excess)
        sent = replace(chat, messages=(*system, *now))
        return Fitted(sent, fixed, fixed + self.sum(now), compaction is not known, cuts)

    def _cut_system(self, system: Sequence[Message], room: int) -> tuple[Message, ...]:
        """Cut a system message that leaves no room for a question.

        This is the last resort: where the window is known from the beginning, less is
        put into the message (`protocols/augment/frames.py`).
        """
        cut = shorter_system(system, room)
        _log.info(
            "the system message for %s is cut from %d to %d bytes, to fit its window",
            self._name,
            self.sum(system),
            self.sum(cut),
        )
        return cut

    def sum(self, messages: Sequence[Message]) -> int:
        """Return the weight of messages in bytes."""
        return sum(map(self._weigh, messages))

    async def _compact(
        self,
        chat: ChatRequest,
        model: str,
        body: Sequence[Message],
        known: Compaction,
        room: int,
        run: Runner,
    ) -> Compaction:
        """Compact a conversation further, and remember it; not if it cannot fit."""
        now = known.apply(body)
        made = await run(partial(plan, now, room, self._weigh, chat.user_texts))
        if made is None or made.weight > room:
            return known
        summary = ""
        if made.cut:
            dropped = now[: made.cut]
            summary = await self._summarise(model, dropped, room, made.longest)
        compaction = known.further(made, summary)
        (digest,) = await run(partial(digests, body, {compaction.length}))
        self._compactions.keep(model, digest, compaction)
        _log.info(
            "a conversation of %d messages is sent to %s as %d, to fit its window",
            len(body),
            self._name,
            len(compaction.apply(body)),
        )
        return compaction


def _split(chat: ChatRequest) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    first = 1 if chat.messages and chat.messages[0].role is Role.SYSTEM else 0
    return chat.messages[:first], chat.messages[first:]


def _run_for(messages: int, weight: int) -> Runner:
    large = messages > _MANY_MESSAGES or weight > _LARGE
    return asyncio.to_thread if large else inline
