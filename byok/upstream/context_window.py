"""Shorten a conversation to the model's context window, before and after refusals.

Why byok does this itself: some servers refuse a prompt that is too long, others
silently drop its beginning, and with it the tools and the task. Such a server answers
as if the user had never named the task, or as if there were no tools. The only sign is
its count of the prompt's tokens.

The length that a prompt may have is learned, because no source states it reliably. The
user's setting, the server's report and refusals give the window in tokens; the counts
in answers give the ratio of bytes to tokens (`upstream/window/estimate.py`). A refusal
that names no number leads to a guess, which later answers raise again. Tokens are not
counted here: each model has its own tokenizer, and a wrong one is no better than the
learned ratio.

The server is asked for the window before the first large prompt. Some servers know the
window only of a model that they have loaded, so it is asked again after the answer,
whose token count may then show that the prompt was cut.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap, SaidOnce
from byok.core.chat import ChatRequest
from byok.core.errors import ByokError, ContextLengthExceeded, UpstreamEmpty
from byok.core.events import Notice, StreamEvent, Usage
from byok.upstream.base import Destination, Plan, Recovery, Upstream
from byok.upstream.fitting import ConversationFitter, Fitted
from byok.upstream.own_questions import Summarise
from byok.upstream.window.estimate import (
    WindowLimits,
    has_images,
    weigh,
    weigh_tools,
    weigh_without_thoughts,
)

_log = logging.getLogger(__name__)
_MAX_NOTICES = 1000  # conversations and models whose notices are remembered
_MAX_MODELS = 200
# Requests with at most so many messages, tools and bytes fit into any window.
_FEW, _SMALL_WEIGHT = 8, 4_000
_MIN_CUT_WEIGHT = 8_000  # bytes; no server is known to cut a shorter prompt
_MAX_GUESSES = 3  # shorter requests if refusals name no number; else it is one
_MIN_ANSWER_TOKENS = 64
_MAX_TOOLS_SHARE = 0.6  # of a window; with more tools, no conversation fits
_FEWER_TOOLS = (
    "Set compact_tools = true under [chat], which describes tools more briefly, or "
    "switch off MCP servers that you do not need."
)
_EMPTY_ANSWER_HINT = (
    "If this was too long for it, set context_window for this upstream, or lower it."
)
GUESSED = Notice(
    "The upstream rejected this conversation as too long without naming its limit, so "
    "byok shortened its oldest part by an estimate. Set context_window for this "
    "upstream."
)


async def _know_nothing(model: str) -> int:
    del model
    return 0


class WindowSource(Struct, frozen=True):
    """How to find out the context windows of an upstream, in tokens; 0 is unknown.

    Attributes:
        lookup: returns the window of a model, by the user's setting or the server.
        reasoning: whether the model's earlier thoughts are sent back and take space.
        may_cut: whether the server may cut a prompt silently.
        cure: what the user can do about a window that is too small.
    """

    lookup: Callable[[str], Awaitable[int]] = _know_nothing
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
        self._window = window or WindowSource()
        self._cure = self._window.cure
        self._models = BoundedMap[str, WindowLimits](_MAX_MODELS)
        self._noticed = SaidOnce(_MAX_NOTICES, forgets=True)
        weighing = weigh if self._window.reasoning else weigh_without_thoughts
        self._fitter = ConversationFitter(
            upstream.name,
            weighing,
            lambda model, *dropped: summarise(Destination(upstream, model), *dropped),
        )

    async def prepare(self, plan: Plan) -> Plan:
        """Shorten a conversation that is known not to fit."""
        chat = plan.outgoing
        if plan.fitted is not None:
            return plan
        if len(chat.tools) <= _FEW and len(chat.messages) <= _FEW:
            weight = weigh_tools(chat.tools) + self._fitter.sum(chat.messages)
            if weight <= _SMALL_WEIGHT:  # it fits into any window and teaches nothing
                return plan
        fitted = await self._fit(plan)
        return plan.having(fitted=fitted, is_cut=plan.is_cut or fitted.is_new)

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Learn from a refusal, and shorten the conversation further, or the answer."""
        if isinstance(failure, UpstreamEmpty) and plan.weight > _SMALL_WEIGHT:
            # llama-cpp-python answers a prompt that is too long with an empty answer.
            return failure.with_hint(_EMPTY_ANSWER_HINT)
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
        if plan.shortenings >= (1 if failure.window else _MAX_GUESSES):
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
        """Return the notice that the conversation was cut by a guess, or cannot fit."""
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
        if tokens and weight > _MIN_CUT_WEIGHT:
            limits.reported = await self._window.lookup(model)
        if limits.learn_from_count(weight, tokens) or not self._window.may_cut:
            return ()
        estimate = int(weight / limits.ratio)
        notice = self._new_notice(
            plan,
            f"The model has read only {tokens:,} of about {estimate:,} tokens: its "
            "server cut off the beginning of this conversation without a word, and "
            f"perhaps the task or the tools. {self._cure}",
        )
        if notice is None:
            return ()
        _log.warning(
            "%s counted %d tokens of a prompt of about %d: it cuts what is too long",
            plan.name,
            tokens,
            estimate,
        )
        return (notice,)

    def _new_notice(self, plan: Plan, text: str) -> Notice | None:
        """Return a notice, once per conversation and model, None if nobody sees it."""
        key = plan.request.conversation, plan.model
        is_shown = not plan.request.silent and self._noticed.is_new(key)
        return Notice(text) if is_shown else None

    async def _fit(self, plan: Plan) -> Fitted:
        """Return the shortened request, with a notice if it cannot fit."""
        chat, model = plan.restored or plan.request, plan.model
        limits, cure = self._limits(model), self._cure
        if not limits.learned:
            limits.reported = await self._window.lookup(model)
        budget = limits.budget(chat.sampling.max_tokens)
        fitted = await self._fitter.fit(chat, model, budget)
        window, notice = limits.window(), None
        if fitted.cuts_system:
            notice = self._new_notice(
                plan,
                f"The instructions are too long for this model's window of {window:,} "
                "tokens, so byok left out their middle: shorten guidelines and rules. "
                f"{cure}",
            )
        elif budget and fitted.fixed_weight >= budget:
            estimate = int(fitted.fixed_weight / limits.ratio)
            notice = self._new_notice(
                plan,
                f"The instructions and tools alone have about {estimate:,} tokens, "
                f"which leaves no room in this model's window of {window:,}. {cure} "
                f"{_FEWER_TOOLS}",
            )
        has_own_prompt = (chat.fim or chat.next_edit) is not None
        is_counted = not has_own_prompt and not has_images(fitted.chat.messages)
        return replace(fitted, is_counted=is_counted, notice=notice)

    def _explain(
        self, refusal: ContextLengthExceeded, chat: ChatRequest, limits: WindowLimits
    ) -> ContextLengthExceeded:
        """Return the refusal, with a hint for the user if the tools are the cause."""
        tools, window = int(weigh_tools(chat.tools) / limits.ratio), limits.window()
        if not window or tools < window * _MAX_TOOLS_SHARE:
            return refusal
        return refusal.with_hint(
            f"The {len(chat.tools)} tools alone have about {tools:,} tokens, and this "
            f"model's window has {window:,}. {_FEWER_TOOLS} {self._cure}"
        )

    def _limits(self, model: str) -> WindowLimits:
        if (limits := self._models.get(model)) is None:
            limits = self._models[model] = WindowLimits()
        return limits


def _with_shorter_answer(
    chat: ChatRequest, failure: ContextLengthExceeded
) -> ChatRequest | None:
    """Lower max_tokens to the tokens that the prompt leaves in the window.

    Returns None if that does not help.
    """
    requested = chat.sampling.max_tokens or 0
    remaining = (failure.window or 0) - (failure.counted or failure.window or 0)
    if not _MIN_ANSWER_TOKENS <= remaining < requested:
        return None
    return replace(chat, sampling=replace(chat.sampling, max_tokens=remaining))
