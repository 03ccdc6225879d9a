"""Shorten conversations to a model's context window, the same way in every turn.

Conversations are compacted in large steps. One that exceeds the window is cut to 60 %
of the budget (`LOW_WATER` in `upstream/window/compaction.py`), and in every later turn
the same replacement stands for the same prefix. Cutting a little in each turn would
keep more of the history, but it would change the start of the prompt each time, and the
upstream's prompt cache would never be used. So above the low-water mark a known
compaction is applied even if the window was found to be larger since, and the whole
conversation would fit: do not optimise that away.
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
# From these sizes on, a conversation is processed in a thread.
_MANY_MESSAGES, _LARGE_WEIGHT = 500, 500_000  # bytes
_MIN_SYSTEM_BYTES = 1000  # a shorter system message would be of no use

# Called with a model, the messages to summarise, the maximum weight of the model's
# prompts in bytes, and the maximum length of the summary in characters.
SummariseFor: TypeAlias = Callable[[str, Sequence[Message], int, int], Awaitable[str]]


class Fitted(Struct, frozen=True):
    """A request that was shortened to the window, if possible; weights are in bytes.

    `fixed_weight` is that of the tools and the system message, which are not shortened
    further. `is_new`: more was cut than in the turn before. `cuts_system`: the system
    message was cut, because it left no space for anything else. `is_counted`: the
    upstream counts the tokens of just what was weighed. `notice` is for the user.
    """

    chat: ChatRequest
    fixed_weight: int
    weight: int
    is_new: bool = False
    cuts_system: bool = False
    is_counted: bool = False
    notice: Notice | None = None


class ConversationFitter:
    """Shortens the conversations of one upstream, and remembers each compaction."""

    def __init__(self, name: str, weigh: Weigh, summarise: SummariseFor) -> None:
        self._name = name
        self._weigh = weigh
        self._summarise = summarise
        self._compactions = Compactions()

    async def fit(self, chat: ChatRequest, model: str, budget: int) -> Fitted:
        """Shorten a conversation to `budget` bytes, if possible; 0 is unlimited.

        The code that byok added to the question gets the space that remains.
        """
        tools = weigh_tools(chat.tools)
        system, body = _split(chat)
        is_full = 0 < budget <= tools + self.sum(system)
        if cuts := is_full and budget - tools > 2 * _MIN_SYSTEM_BYTES:
            system = self._cut_system(system, (budget - tools) // 2)
            chat = replace(chat, messages=(*system, *body))
        fixed = tools + self.sum(system)
        weight, budget = self.sum(body), budget - fixed
        unchanged = Fitted(chat, fixed, fixed + weight, cuts_system=cuts)
        if budget <= 0 or weight <= budget * LOW_WATER:
            return unchanged
        if weight <= budget and not self._compactions.knows(model):
            return unchanged
        is_large = len(body) > _MANY_MESSAGES or weight > _LARGE_WEIGHT
        run: Runner = asyncio.to_thread if is_large else inline
        lengths = self._compactions.lengths(model)
        prefixes = await run(partial(digests, body, lengths))
        known = self._compactions.find(model, prefixes) or Compaction(0, ())
        compaction, messages = known, known.apply(body)
        bare = less_context(body, sys.maxsize)  # without any retrieved code
        if self.sum(known.apply(bare)) > budget:
            compaction = await self._compact(chat, model, bare, known, budget, run)
            messages = compaction.apply(body)
        if (excess := self.sum(messages) - budget) > 0:
            messages = less_context(messages, excess)
        shortened = replace(chat, messages=(*system, *messages))
        weight, is_new = fixed + self.sum(messages), compaction is not known
        return Fitted(shortened, fixed, weight, is_new, cuts)

    def _cut_system(
        self, system: Sequence[Message], budget: int
    ) -> tuple[Message, ...]:
        """Cut a system message that leaves no space for a question.

        This is the last resort: if the window is known from the beginning, less is put
        into the message (`protocols/augment/frames.py`).
        """
        cut = shorter_system(system, budget)
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
        budget: int,
        run: Runner,
    ) -> Compaction:
        """Return a further compaction, which is stored, or `known` if none can fit."""
        messages = known.apply(body)
        planned = await run(
            partial(plan, messages, budget, self._weigh, chat.user_texts)
        )
        if planned is None or planned.weight > budget:
            return known
        summary = ""
        if planned.cut:
            dropped = messages[: planned.cut]
            summary = await self._summarise(model, dropped, budget, planned.longest)
        compaction = known.extend(planned, summary)
        (digest,) = await run(partial(digests, body, {compaction.length}))
        self._compactions.store(model, digest, compaction)
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
