"""Shorten a conversation to the model's context window, before and after refusals.

Why byok does this itself: some servers refuse a prompt that is too long, others
silently drop its beginning, and with it the tools and the task.

How long a prompt may be is learned, as nobody states it reliably. The user's setting,
the server's report and refusals give the window in tokens; the counts in answers give
the ratio of bytes to tokens (`upstream/window/estimate.py`). A refusal that names no
number leads to a guess, which later answers raise again. Tokens are not counted here:
each model has its own tokenizer, and a wrong one is no better than the learned ratio.

The server is asked before the first large prompt. Some know the window only of a model
that they have loaded, so it is asked again after the answer, whose count may then tell
that the prompt was cut.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap, SaidOnce
from byok.core.chat import ChatRequest, Message
from byok.core.errors import ByokError, ContextLengthExceeded, UpstreamEmpty
from byok.core.events import Notice, StreamEvent, Usage
from byok.upstream.base import Destination, Plan, Recovery, Upstream
from byok.upstream.fitting import ConversationFitter, Fitted
from byok.upstream.own_questions import Summarise
from byok.upstream.window.estimate import (
    WindowLimits,
    has_images,
    weigh,
    weigh_said,
    weigh_tools,
)

# What users are told about windows, once per conversation and model.
#
# A server that cuts a prompt without a word answers as if the user had never named the
# task, or as if there were no tools. The only sign is its count of the prompt's tokens.


_MOST_TOLD = 1000
_MOST_OF_TOOLS = 0.6  # of a window, from where no conversation fits beside them
_FEWER_TOOLS = (
    "Set compact_tools = true under [chat], which describes tools more briefly, or "
    "switch off MCP servers that you do not need."
)
_UNSAID = (
    "If this was too long for it, set context_window for this upstream, or lower it."
)
GUESSED = Notice(
    "The upstream rejected this conversation as too long without naming its limit, so "
    "byok shortened its oldest part by an estimate. Set context_window for this "
    "upstream."
)


def _describe_cut(tokens: int, estimate: int, cure: str) -> str:
    return (
        f"The model has read only {tokens:,} of about {estimate:,} tokens: its server "
        "cut off the beginning of this conversation without a word, and perhaps the "
        f"task or the tools. {cure}"
    )


def _describe_instructions(window: int, cure: str) -> str:
    return (
        f"The instructions are too long for this model's window of {window:,} tokens, "
        f"so byok left out their middle: shorten guidelines and rules. {cure}"
    )


def _describe_no_room(window: int, estimate: int, cure: str) -> str:
    return (
        f"The instructions and tools alone have about {estimate:,} tokens, which "
        f"leaves no room in this model's window of {window:,}. {cure} {_FEWER_TOOLS}"
    )


_log = logging.getLogger(__name__)
_MAX_MODELS = 200
_FEW, _SMALL = 8, 4_000  # messages or tools, bytes: they fit into any window
_LEAST_CUT = 8_000  # bytes; no server is known to cut less
_TRIES = 3  # of shorter requests where refusals name no number; else it is one
_LEAST_ANSWER = 64  # tokens


class WindowSource(Struct, frozen=True):
    """How to find out the context windows of an upstream, in tokens; 0 is unknown.

    Attributes:
        lookup: tells the window of one model, by the user's setting or the server.
        reasoning: the model's earlier thoughts are sent back and need room.
        may_cut: the server may cut a prompt without a word.
        cure: what the user can do about a window that is too small.
    """

    lookup: Callable[[str], Awaitable[int]] | None = None
    reasoning: bool = False
    may_cut: bool = True
    cure: str = "Set context_window for this upstream."


class ShorterConversation(Recovery):
    """Keeps the conversations with one upstream within the windows of its models."""

    def __init__(
        self,
        upstream: Upstream,
        summarise: Summarise,
        window: WindowSource | None = None,
    ) -> None:
        self._upstream = upstream
        self._summarise = summarise
        self._window = window or WindowSource()
        self._cure = self._window.cure
        self._models = BoundedMap[str, WindowLimits](_MAX_MODELS)
        self._told = SaidOnce(_MOST_TOLD, forgets=True)
        weighing = weigh if self._window.reasoning else weigh_said
        self._fitter = ConversationFitter(upstream.name, weighing, self._write_summary)

    async def prepare(self, plan: Plan) -> Plan:
        """Shorten a conversation that does not fit, as far as that is known."""
        if plan.fitted is not None or self._is_small(plan.outgoing):
            return plan
        fitted = await self._fit(plan)
        return plan.having(fitted=fitted, is_cut=plan.is_cut or fitted.is_new)

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Learn from a refusal, and shorten the conversation further, or the answer."""
        if isinstance(failure, UpstreamEmpty) and plan.weight > _SMALL:
            return failure.with_hint(_UNSAID)  # llama-cpp-python refuses it so
        if not isinstance(failure, ContextLengthExceeded) or not plan.fitted:
            return failure
        limits, weight = self._limits(plan.model), plan.weight
        limits.learn_from_refusal(weight, failure.window, failure.counted)
        _log.info(
            "%s: the window of %.80s is taken to be %d tokens",
            plan.name,
            plan.model,
            limits.learned,
        )
        explained = self._explain(failure, plan.request, limits)
        if plan.shortenings >= (1 if failure.window else _TRIES):
            return explained
        fitted = await self._fit(plan)
        if fitted.weight >= weight:
            shorter = _with_shorter_answer(fitted.chat, failure)
            if shorter is None:
                return explained
            fitted = replace(fitted, chat=shorter)
        return plan.having(
            fitted=fitted,
            is_cut=plan.is_cut or fitted.is_new,
            shortenings=plan.shortenings + 1,
            written=None,
        )

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Tell that the conversation had to be cut by a guess, or cannot fit."""
        if plan.fitted is None:
            return ()
        if plan.is_cut and self._limits(plan.model).guessed:
            return (GUESSED,)
        return (plan.fitted.notice,) if plan.fitted.notice else ()

    async def on_answer_end(
        self, plan: Plan, events: Sequence[StreamEvent]
    ) -> Sequence[Notice]:
        """Learn from the count of the prompt; return the notice that it was cut."""
        if plan.fitted is None or not plan.fitted.is_counted:
            return ()
        limits, model, weight = self._limits(plan.model), plan.model, plan.weight
        counts = (event.input_tokens for event in events if isinstance(event, Usage))
        tokens = next(counts, 0)
        if tokens and weight > _LEAST_CUT:
            limits.told = await self._ask(model)
        if limits.learn_from_count(weight, tokens) or not self._window.may_cut:
            return ()
        estimate = int(weight / limits.ratio)
        told_now = self._tell_once(plan, _describe_cut(tokens, estimate, self._cure))
        if told_now is None:
            return ()
        _log.warning(
            "%s counted %d tokens of a prompt of about %d: it cuts what is too long",
            plan.name,
            tokens,
            estimate,
        )
        return (told_now,)

    def _tell_once(self, plan: Plan, text: str) -> Notice | None:
        """Return the notice of a text, unless the user knows, or would not see it."""
        about = plan.request.conversation, plan.model
        is_seen = not plan.request.silent and self._told.is_new(about)
        return Notice(text) if is_seen else None

    async def _fit(self, plan: Plan) -> Fitted:
        """Return what fits, with the notice where nothing can."""
        chat, model = plan.restored or plan.request, plan.model
        limits, cure = self._limits(model), self._cure
        if not limits.learned:
            limits.told = await self._ask(model)
        room = limits.room(chat.sampling.max_tokens)
        fitted = await self._fitter.fit(chat, model, room)
        window, notice = limits.window(), None
        if fitted.cuts_system:
            notice = self._tell_once(plan, _describe_instructions(window, cure))
        elif room and fitted.fixed >= room:
            estimate = int(fitted.fixed / limits.ratio)
            notice = self._tell_once(plan, _describe_no_room(window, estimate, cure))
        has_own_prompt = (chat.fim or chat.next_edit) is not None
        is_counted = not has_own_prompt and not has_images(fitted.chat.messages)
        return replace(fitted, is_counted=is_counted, notice=notice)

    async def _ask(self, model: str) -> int:
        """Return the window that the user or the server tells, 0 for none."""
        lookup = self._window.lookup
        return await lookup(model) if lookup else 0

    async def _write_summary(
        self, model: str, dropped: Sequence[Message], room: int, longest: int
    ) -> str:
        asker = Destination(self._upstream, model)
        return await self._summarise(asker, dropped, room, longest)

    def _explain(
        self, refusal: ContextLengthExceeded, chat: ChatRequest, limits: WindowLimits
    ) -> ContextLengthExceeded:
        """Return the refusal with what the user can do, where tools are the cause."""
        tools, window = int(weigh_tools(chat.tools) / limits.ratio), limits.window()
        if not window or tools < window * _MOST_OF_TOOLS:
            return refusal
        return refusal.with_hint(
            f"The {len(chat.tools)} tools alone have about {tools:,} tokens, and this "
            f"model's window has {window:,}. {_FEWER_TOOLS} {self._cure}"
        )

    def _limits(self, model: str) -> WindowLimits:
        if (limits := self._models.get(model)) is None:
            limits = self._models[model] = WindowLimits()
        return limits

    def _is_small(self, chat: ChatRequest) -> bool:
        """Tell whether a request fits into any window and teaches nothing."""
        if len(chat.tools) > _FEW or len(chat.messages) > _FEW:
            return False
        weight = weigh_tools(chat.tools) + self._fitter.sum(chat.messages)
        return weight <= _SMALL


def _with_shorter_answer(
    chat: ChatRequest, failure: ContextLengthExceeded
) -> ChatRequest | None:
    """Lower max_tokens to what the window leaves beside a prompt that fits.

    Returns None if that does not help.
    """
    wanted = chat.sampling.max_tokens or 0
    left = (failure.window or 0) - (failure.counted or failure.window or 0)
    if not _LEAST_ANSWER <= left < wanted:
        return None
    return replace(chat, sampling=replace(chat.sampling, max_tokens=left))
