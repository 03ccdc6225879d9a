"""An upstream that shortens conversations to the model's context window.

Why byok does this itself: some servers refuse a prompt that is too long, others
silently drop its beginning, and with it the tools and the task.

How long a prompt may be is learned, as nobody states it reliably. The user's setting,
the server's report and refusals give the window in tokens; the counts in answers give
the ratio of bytes to tokens (`window/estimate.py`). A refusal that names no number
leads to a guess, which later answers raise again. Tokens are not counted here: each
model has its own tokenizer, and a wrong one is no better than the learned ratio.

The server is asked before the first large prompt. Some know the window only of a model
that they have loaded, so it is asked again after the answer, whose count may then tell
that the prompt was cut.

A shorter request is sent after a refusal only while the user has not seen any answer.
The messages are released as soon as the answer begins: they can be many megabytes.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count

from byok.chat import ChatRequest, Message
from byok.errors import ContextLengthExceeded, UpstreamEmpty
from byok.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    Usage,
    begins_answer,
)
from byok.upstream.base import Upstream, UpstreamLayer
from byok.upstream.fitting import ConversationFitter, Fitted
from byok.upstream.router import Destination
from byok.upstream.summaries import Summarise
from byok.upstream.window_notices import GUESSED, WindowNotices
from byok.window.estimate import (
    WindowLimits,
    has_images,
    weigh,
    weigh_said,
    weigh_tools,
)

_log = logging.getLogger(__name__)
_MAX_MODELS = 200
_FEW, _SMALL = 8, 4_000  # messages or tools, bytes: they fit into any window
_LEAST_CUT = 8_000  # bytes; no server is known to cut less
_TRIES = 3  # of shorter requests where refusals name no number; else it is one
_LEAST_ANSWER = 64  # tokens
_FORGOTTEN = ChatRequest(())
_UNSAID = (
    "If this was too long for it, set context_window for this upstream, or lower it."
)


@dataclass(frozen=True, slots=True)
class WindowSource:
    """How to find out the context windows of an upstream, in tokens; 0 is unknown.

    Attributes:
        configured: the user's setting for all models; `by_model` are those for one.
        lookup: asks the server for the window of one model.
        reasoning: the model's earlier thoughts are sent back and need room.
        may_cut: the server may cut a prompt without a word.
        cure: what the user can do about a window that is too small.
    """

    configured: int = 0
    lookup: Callable[[str], Awaitable[int]] | None = None
    reasoning: bool = False
    may_cut: bool = True
    cure: str = "Set context_window for this upstream."
    by_model: Mapping[str, int] = field(default_factory=dict)

    def setting_of(self, model: str) -> int:
        """Return the user's setting for a model, 0 if there is none."""
        return self.by_model.get(model) or self.configured


class WindowedUpstream(UpstreamLayer):
    """An upstream that shortens conversations to the model's context window."""

    def __init__(
        self, inner: Upstream, summarise: Summarise, window: WindowSource | None = None
    ) -> None:
        super().__init__(inner)
        self._summarise = summarise
        self._window = window or WindowSource()
        self._models: OrderedDict[str, WindowLimits] = OrderedDict()
        self._notices = WindowNotices(self._window.cure)
        weighing = weigh if self._window.reasoning else weigh_said
        self._fitter = ConversationFitter(inner.name, weighing, self._summarise_for)

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
        limits, conversation = self._limits(model), _conversation_of(chat)
        fitted, owed = await self._fit(chat, model, limits)
        cut = fitted.is_new
        for attempt in count(1):
            sent, weight = fitted.chat, fitted.weight
            begun, teaches = False, _is_what_is_weighed(sent)
            owed = [GUESSED] if cut and limits.guessed else owed
            try:
                async with aclosing(self._inner.stream(sent, model)) as batches:
                    async for batch in batches:
                        if not begun and begins_answer(batch):
                            _check_room(batch)
                            begun = True
                            chat = sent = _FORGOTTEN  # they may be large
                            fitted = replace(fitted, chat=_FORGOTTEN)
                            batch = [*owed, *batch]
                        if teaches and isinstance(batch[-1], Finish):
                            told = await self._learn(
                                model, limits, weight, batch, conversation
                            )
                            batch = [*batch[:-1], *told, batch[-1]]
                        yield batch
                return
            except ContextLengthExceeded as refusal:
                if begun:
                    raise
                self._learn_from_refusal(model, limits, weight, refusal)
                error = self._explain(refusal, chat, limits)
                if attempt > (1 if error.window else _TRIES):
                    raise error from refusal
                fitted, owed = await self._fit(chat, model, limits)
                cut = cut or fitted.is_new
                if fitted.weight >= weight:
                    shorter = _with_shorter_answer(fitted.chat, error)
                    fitted = replace(fitted, chat=shorter)
            except UpstreamEmpty as error:
                _explain_empty(error, weight)
                raise

    async def _fit(
        self, chat: ChatRequest, model: str, limits: WindowLimits
    ) -> tuple[Fitted, list[StreamEvent]]:
        """Return what is sent, and the notice where no conversation can fit."""
        told = 0 if limits.window() else await self._ask(model)
        room = limits.room(told, chat.sampling.max_tokens)
        fitted = await self._fitter.fit(chat, model, room)
        window, conversation = limits.window(told), _conversation_of(chat)
        notice = None
        if fitted.cuts_system:
            notice = self._notices.note_instructions(conversation, model, window)
        elif room and fitted.fixed >= room:
            estimate = int(fitted.fixed / limits.ratio)
            notice = self._notices.note_no_room(conversation, model, window, estimate)
        return fitted, [notice] if notice else []

    async def _ask(self, model: str) -> int:
        """Return the window that the server tells, 0 for none."""
        lookup = self._window.lookup
        return await lookup(model) if lookup else 0

    async def _summarise_for(
        self, model: str, dropped: Sequence[Message], room: int, longest: int
    ) -> str:
        return await self._summarise(Destination(self, model), dropped, room, longest)

    async def _learn(
        self,
        model: str,
        limits: WindowLimits,
        weight: int,
        batch: list[StreamEvent],
        conversation: str | None,
    ) -> list[StreamEvent]:
        """Learn from the count of the prompt; return the notice that it was cut."""
        counts = (event.input_tokens for event in batch if isinstance(event, Usage))
        tokens = next(counts, 0)
        told = await self._ask(model) if tokens and weight > _LEAST_CUT else 0
        if limits.learn_from_count(weight, tokens, told) or not self._window.may_cut:
            return []
        estimate = int(weight / limits.ratio)
        notice = self._notices.note_cut(conversation, model, tokens, estimate)
        if notice is None:
            return []
        _log.warning(
            "%s counted %d tokens of a prompt of about %d: it cuts what is too long",
            self.name,
            tokens,
            estimate,
        )
        return [notice]

    def _explain(
        self, refusal: ContextLengthExceeded, chat: ChatRequest, limits: WindowLimits
    ) -> ContextLengthExceeded:
        """Return the refusal with what the user can do, where tools are the cause."""
        tools = int(weigh_tools(chat.tools) / limits.ratio)
        count = len(chat.tools)
        return self._notices.explain_tools(refusal, limits.window(), tools, count)

    def _learn_from_refusal(
        self,
        model: str,
        limits: WindowLimits,
        weight: int,
        error: ContextLengthExceeded,
    ) -> None:
        limits.learn_from_refusal(weight, error.window, error.counted)
        _log.info(
            "%s: the window of %.80s is taken to be %d tokens",
            self.name,
            model,
            limits.learned,
        )

    def _limits(self, model: str) -> WindowLimits:
        if model not in self._models:
            self._models[model] = WindowLimits(self._window.setting_of(model))
            if len(self._models) > _MAX_MODELS:
                self._models.popitem(last=False)
        return self._models[model]

    def _is_small(self, chat: ChatRequest) -> bool:
        """Tell whether a request fits into any window and teaches nothing."""
        if len(chat.tools) > _FEW or len(chat.messages) > _FEW:
            return False
        weight = weigh_tools(chat.tools) + self._fitter.sum(chat.messages)
        return weight <= _SMALL


def _conversation_of(chat: ChatRequest) -> str | None:
    """Return the id of a conversation; None where no user would see a notice."""
    return None if chat.silent else chat.conversation


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
