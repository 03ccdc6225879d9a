"""An upstream that shortens conversations to the model's context window.

Why byok does this itself: some servers refuse a prompt that is too long, others
(Ollama, LM Studio) silently drop its beginning, and with it the tools and the task.

Conversations are compacted in large steps. When one exceeds the window it is cut to
60 % of the room (`LOW_WATER` in `window/compaction.py`), and every later turn gets the
same replacement for the same beginning. Cutting a little in each turn would keep more
of the history, but it changes the start of the prompt each time, and the upstream's
prompt cache would never be used. So above the low-water mark a known compaction is
applied even if the whole conversation would fit again by what was learned since: do not
optimise that away.

How long a prompt may be is learned, as nobody states it reliably. The user's setting,
the server's report and refusals give the window in tokens; the counts in answers give
the ratio of bytes to tokens (`window/limits.py`). A refusal that names no number leads
to a guess, which later answers raise again. Tokens are not counted here: each model has
its own tokenizer, and a wrong one is no better than the learned ratio.

A shorter request is sent after a refusal only while the user has not seen any answer.
The messages are released as soon as the answer begins: they can be many megabytes.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from byok.chat import ChatRequest, Message, Role
from byok.errors import ContextLengthExceeded, UpstreamEmpty
from byok.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    Usage,
    begins_answer,
)
from byok.threads import Runner, inline
from byok.upstream.base import Upstream, UpstreamLayer
from byok.upstream.router import Destination
from byok.upstream.summaries import Summarise
from byok.window.compaction import LOW_WATER, plan
from byok.window.estimate import has_images, weigh, weigh_said, weigh_tools
from byok.window.limits import WindowLimits
from byok.window.memory import Compaction, Compactions, digests
from byok.window.shorten import less_context, without_context

_log = logging.getLogger(__name__)
_MAX_MODELS = 200
_FEW, _SMALL = 8, 4_000  # messages or tools, bytes: they fit into any window
_TRIES = 3  # of shorter requests where refusals name no number; else it is one
_LEAST_ANSWER = 64  # tokens
_FORGOTTEN = ChatRequest(())
_MANY_MESSAGES, _LARGE = 500, 500_000  # bytes
_GUESSED = Notice(
    "The upstream rejected this conversation as too long without naming its limit, so "
    "byok shortened its oldest part by an estimate. Set context_window for this "
    "upstream."
)
_UNSAID = (
    "If this was too long for it, set context_window for this upstream, or lower it."
)


@dataclass(frozen=True, slots=True)
class WindowSource:
    """How to find out the context windows of an upstream, in tokens; 0 is unknown.

    `configured` is the user's setting for all models, `lookup` asks the server for that
    of one. `reasoning`: the model's earlier thoughts are sent back and need room.
    """

    configured: int = 0
    lookup: Callable[[str], Awaitable[int]] | None = None
    reasoning: bool = False


class WindowedUpstream(UpstreamLayer):
    """An upstream that shortens conversations to the model's context window."""

    def __init__(
        self, inner: Upstream, summarise: Summarise, window: WindowSource | None = None
    ) -> None:
        super().__init__(inner)
        self._summarise = summarise
        self._window = window or WindowSource()
        self._weigh = weigh if self._window.reasoning else weigh_said
        self._models: OrderedDict[str, WindowLimits] = OrderedDict()
        self._compactions = Compactions()
        self._suspected: set[str] = set()

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream."""
        if self._is_small(chat):
            return self._inner.stream(chat, model)
        return self._fitting(chat, model)

    async def _fitting(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Send what fits, and learn from the answer or refusal how much that is."""
        limits = self._limits(model)
        sent, weight, cut = await self._fit(chat, model, limits)
        for attempt in count(1):
            begun, teaches = False, _is_what_is_weighed(sent)
            owed = [_GUESSED] if cut and limits.guessed else []
            try:
                async with aclosing(self._inner.stream(sent, model)) as batches:
                    async for batch in batches:
                        if not begun and begins_answer(batch):
                            _check_room(batch)
                            begun = True
                            chat = sent = _FORGOTTEN  # they may be large
                            batch = [*owed, *batch]
                        if teaches and isinstance(batch[-1], Finish):
                            self._learn(model, limits, weight, batch)
                        yield batch
                return
            except ContextLengthExceeded as error:
                if begun:
                    raise
                limits.learn_from_refusal(weight, error.window, error.counted)
                _log.info(
                    "%s: the window of %.80s is taken to be %d tokens",
                    self.name,
                    model,
                    limits.learned,
                )
                if attempt > (1 if error.window else _TRIES):
                    raise
                sent, lighter, more = await self._fit(chat, model, limits)
                if lighter >= weight:
                    sent = _with_shorter_answer(sent, error)
                weight, cut = lighter, cut or more
            except UpstreamEmpty as error:
                _explain_empty(error, weight)
                raise

    async def _fit(
        self, chat: ChatRequest, model: str, limits: WindowLimits
    ) -> tuple[ChatRequest, int, bool]:
        """Return the request, its weight in bytes, and whether it was cut further.

        The code that byok added to the question gets the room that is left.
        """
        first = 1 if chat.messages and chat.messages[0].role is Role.SYSTEM else 0
        system, body = chat.messages[:first], chat.messages[first:]
        fixed = weigh_tools(chat.tools) + self._sum(system)
        weight = self._sum(body)
        lookup = None if limits.window() else self._window.lookup
        found = await lookup(model) if lookup else 0
        room = limits.room(found, chat.sampling.max_tokens) - fixed
        if room <= 0 or weight <= room * LOW_WATER:
            return chat, fixed + weight, False
        if weight <= room and not self._compactions.knows(model):
            return chat, fixed + weight, False
        run = _run_for(len(body), weight)
        lengths = self._compactions.lengths(model)
        beginnings = await run(partial(digests, body, lengths))
        known = self._compactions.find(model, beginnings) or Compaction(0, ())
        compaction, now = known, known.apply(body)
        bare = without_context(body)
        if self._sum(known.apply(bare)) > room:
            compaction = await self._compact(chat, model, bare, known, room, run)
            now = compaction.apply(body)
        if (excess := self._sum(now) - room) > 0:
            now = less_context(now, excess)
        sent = replace(chat, messages=(*system, *now))
        return sent, fixed + self._sum(now), compaction is not known

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
        made = await run(partial(plan, now, room, self._weigh, chat.own_words))
        if made is None or made.weight > room:
            return known
        summary = ""
        if made.cut:
            asker = Destination(self, model)
            dropped = now[: made.cut]
            summary = await self._summarise(asker, dropped, room, made.longest)
        compaction = known.further(made, summary)
        (digest,) = await run(partial(digests, body, {compaction.length}))
        self._compactions.keep(model, digest, compaction)
        _log.info(
            "a conversation of %d messages is sent to %s as %d, to fit its window",
            len(body),
            self.name,
            len(compaction.apply(body)),
        )
        return compaction

    def _learn(
        self, model: str, limits: WindowLimits, weight: int, batch: list[StreamEvent]
    ) -> None:
        """Learn from the token count of the prompt, which comes with the last batch."""
        counts = (event.input_tokens for event in batch if isinstance(event, Usage))
        tokens = next(counts, 0)
        if limits.learn_from_count(weight, tokens) or model in self._suspected:
            return
        self._suspected.add(model)
        _log.warning(
            "%s counted %d tokens of a prompt of %d bytes: it seems to cut what is "
            "too long for it. Set context_window for this upstream.",
            self.name,
            tokens,
            weight,
        )

    def _limits(self, model: str) -> WindowLimits:
        if model not in self._models:
            self._models[model] = WindowLimits(self._window.configured)
            if len(self._models) > _MAX_MODELS:
                self._models.popitem(last=False)
        return self._models[model]

    def _is_small(self, chat: ChatRequest) -> bool:
        """Tell whether a request fits into any window and teaches nothing."""
        if len(chat.tools) > _FEW or len(chat.messages) > _FEW:
            return False
        return weigh_tools(chat.tools) + self._sum(chat.messages) <= _SMALL

    def _sum(self, messages: Sequence[Message]) -> int:
        return sum(map(self._weigh, messages))


def _run_for(messages: int, weight: int) -> Runner:
    """Choose where to process a conversation: long ones in a thread."""
    large = messages > _MANY_MESSAGES or weight > _LARGE
    return asyncio.to_thread if large else inline


def _is_what_is_weighed(chat: ChatRequest) -> bool:
    """Tell whether the upstream counts only the texts of the messages."""
    return chat.fim is None and not has_images(chat.messages)


def _with_shorter_answer(
    chat: ChatRequest, error: ContextLengthExceeded
) -> ChatRequest:
    """Lower max_tokens to what the window leaves beside a prompt that fits.

    Raises:
        ContextLengthExceeded: the given one, if that does not help.
    """
    wanted = chat.sampling.max_tokens or 0
    left = (error.window or 0) - (error.counted or error.window or 0)
    if not _LEAST_ANSWER <= left < wanted:
        raise error
    return replace(chat, sampling=replace(chat.sampling, max_tokens=left))


def _explain_empty(error: UpstreamEmpty, weight: int) -> None:
    """Suggest that the conversation was too long: llama-cpp-python refuses it so.

    Raises:
        UpstreamEmpty: with that hint, where the conversation was not a small one.
    """
    if weight > _SMALL:
        raise error.with_hint(_UNSAID) from error


def _check_room(batch: list[StreamEvent]) -> None:
    """Raise ContextLengthExceeded if an answer ends before its first token (GLM)."""
    match [event for event in batch if not isinstance(event, Notice)]:
        case [Usage(input_tokens=read, output_tokens=0), Finish(FinishReason.LENGTH)]:
            raise ContextLengthExceeded(
                "the conversation leaves it no room for an answer.",
                window=read or None,
                counted=read or None,
            )
        case _:
            pass
