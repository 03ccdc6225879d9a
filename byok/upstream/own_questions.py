"""byok's own questions to models: short ones, their routes, and summaries.

byok asks short questions for itself while somebody waits for something else: for the
order of files, for words of code. So they end early, by length and by time, and only
the chosen model is asked: if it gives no answer, byok continues without one.

Such questions reveal what somebody works on, and so do the lines of code that may come
with them. A user who lets only a model on this machine chat must not find them on
another one because a small model was named for titles. So the rule is:

    a model on this machine may be asked, and one elsewhere only if its upstream is one
    that chats go to

The chats of a window of an editor go to the upstreams that were chosen in it since the
start (`router.py`). For a window without a chat, and for programs without windows, it
is the upstream of `[routing.models] chat`, else that of the default model, and those
after it in `[routing.fallback]`; there is none if the official service answers chats.
Models that clients only could choose do not count.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import ChatRequest, ImagePart, Message, Role, Sampling, TextPart
from byok.core.errors import (
    ByokError,
    ConfigError,
    ContextLengthExceeded,
    UpstreamEmpty,
    UpstreamTimeout,
)
from byok.core.escapes import truncate_middle
from byok.core.events import TextDelta, Usage
from byok.core.prompts.prompt_set import PromptSet, shipped_prompts
from byok.core.record import current_record
from byok.core.routing import Purpose
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.fallback import Fallbacks
from byok.upstream.window.transcript import instruction, outline, transcript

_log = logging.getLogger(__name__)
PICTURE = "picture"  # the name of the prompt for questions about pictures
_DEFAULT_SAMPLING = Sampling()
# No reasoning: it takes longer than anybody waits here.
_BRIEF = Sampling(temperature=0.0, effort="none")
# For models that reason a little in spite of that, or that greet first.
_EXTRA_TOKENS = 64
_MAX_CACHED = 64
_INPUT_SHARE = 0.75  # of the budget of the conversation's own model
_SUMMARY_ATTEMPTS = 3
_MIN_BYTES_A_TOKEN = 2  # fewer than any text has

# Called with the destination of the conversation, the messages that are left out of it,
# the maximum weight of its model's prompts in bytes, and the maximum length of the
# summary in characters.
Summarise: TypeAlias = Callable[
    [Destination, Sequence[Message], int, int], Awaitable[str]
]


class ShortQuestion:
    """Asks a model short questions (`byok.search.retrieval.model_aids.AskModel`).

    `find` returns the model by the settings in force, or raises a refusal.
    """

    def __init__(self, find: Callable[[], Awaitable[Destination]]) -> None:
        self._find = find

    async def __call__(
        self, instruction: str, text: str, *, seconds: float, longest: int
    ) -> str:
        """Return the answer, cut at `longest` characters.

        Raises:
            ByokError: there is no usable answer, or none within `seconds`.
        """
        # A token has at least one character, unless it is the end.
        sampling = replace(_BRIEF, max_tokens=longest + _EXTRA_TOKENS)
        name = ""
        try:
            async with asyncio.timeout(seconds):
                destination = await self._find()
                name = destination.upstream.name
                record = current_record()
                if not record.upstream:
                    record.upstream, record.model = name, destination.model
                return await answer_of(
                    destination, instruction, text, longest=longest, sampling=sampling
                )
        except TimeoutError as error:
            raise UpstreamTimeout(
                f"it gave no answer to a short question within {seconds:g} s.",
                upstream=name,
            ) from error


async def answer_of(
    destination: Destination,
    instruction: str,
    text: str,
    *,
    pictures: tuple[ImagePart, ...] = (),
    longest: int | None = None,
    sampling: Sampling = _DEFAULT_SAMPLING,
) -> str:
    """Ask one question, as a single user message; return the answer's text.

    A single message cannot be compacted, so it never needs a summary itself. Reading
    ends after `longest` characters. A model that sees no `pictures` refuses.

    Raises:
        ByokError: there is no usable answer.
    """
    chat = ChatRequest(
        (
            Message(Role.SYSTEM, (TextPart(instruction),)),
            Message(Role.USER, (TextPart(text), *pictures)),
        ),
        prompt=PICTURE if pictures else "",
        silent=True,
        sampling=sampling,
    )
    texts, length, usage = list[str](), 0, Usage()
    record = current_record()
    name, model = destination.upstream.name, destination.model
    record.uncounted.append((name, model))
    async with aclosing(ask(destination, chat)) as batches:
        async for batch in batches:
            for event in batch:
                if isinstance(event, TextDelta):
                    texts.append(event.text)
                    length += len(event.text)
                elif isinstance(event, Usage):
                    usage = event
            if longest is not None and length >= longest:
                break
    if usage != Usage():
        record.uncounted.remove((name, model))
        record.note_own_usage(name, model, usage)
    if not (answer := "".join(texts).strip()):
        raise UpstreamEmpty("it wrote nothing.", upstream=name)
    return answer[:longest]


class QuestionRoutes(Struct, frozen=True):
    """Routes byok's own questions by the settings in force.

    `chat_model` is the user's choice for chats that name no model, "" for the default,
    and None if no upstream answers chats.
    """

    fallbacks: Fallbacks
    chat_model: str | None

    async def find(self, model_id: str) -> Destination:
        """Return the destination of a model that the user named; "" is that of chats.

        It has no fallback: a failure costs less than the wait for another model.

        Raises:
            ConfigError: the model is on another machine, and chats do not go there.
        """
        router = self.fallbacks.router
        destination = await router.choose_listed(model_id or self.chat_model or "")
        name = destination.upstream.name
        if name in self.fallbacks.local or name in await self._chat_upstreams():
            return destination
        raise ConfigError(
            f"it is asked nothing about code: no chat goes to {name}.",
            hint="byok sends its own questions only to models on this machine and to "
            "upstreams of [routing] default, models.chat and fallback.chat.",
            upstream=name,
        )

    async def _chat_upstreams(self) -> frozenset[str]:
        """Return the names of the upstreams that chats may go to."""
        recorded = current_record().chat_upstreams
        if recorded is not None:
            return recorded
        if self.chat_model is None:
            return frozenset()
        chosen = await self.fallbacks.router.choose_listed(self.chat_model)
        chain = await self.fallbacks.chain_of(chosen, Purpose.CHAT)
        return frozenset(destination.upstream.name for destination in chain)


class Summariser:
    """Asks a model for summaries of messages that no longer fit, and caches them.

    The model `model_id` writes them (`find` routes to it), or else the conversation's
    own model. After a failure it is not asked for `pause` seconds; meanwhile an outline
    that needs no model replaces the summary.
    """

    def __init__(
        self,
        model_id: str,
        find: Callable[[str], Awaitable[Destination]],
        prompts: PromptSet | None = None,
        *,
        seconds: float = 60.0,
        pause: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model_id = model_id
        self._find = find
        self._prompts = prompts or shipped_prompts()
        self._seconds = seconds
        self._pause = pause
        self._clock = clock
        self._cooldowns = BoundedMap[str, float](_MAX_CACHED)  # by model: the end
        self._summaries = BoundedMap[bytes, str](_MAX_CACHED)

    async def __call__(
        self, asker: Destination, dropped: Sequence[Message], budget: int, longest: int
    ) -> str:
        """Return a summary of at most `longest` characters; see Summarise."""
        budget = int(budget * _INPUT_SHARE)
        key = await asyncio.to_thread(_digest, dropped, budget)
        if (cached := self._summaries.get(key)) is not None:
            return truncate_middle(cached, longest)
        name = self._model_id or f"byok:{asker.upstream.name}:{asker.model}"
        if self._clock() < (self._cooldowns.get(name) or 0.0):
            return await asyncio.to_thread(outline, dropped, longest)
        try:
            async with asyncio.timeout(self._seconds):
                writer = await self._find(self._model_id) if self._model_id else asker
                text = await self._write(writer, dropped, budget, longest)
        except (ByokError, TimeoutError) as error:
            self._cooldowns[name] = self._clock() + self._pause
            reason = error.log_text if isinstance(error, ByokError) else "too slow"
            _log.warning(
                "not asking %.80s for summaries of long conversations for now: %s",
                name,
                reason,
            )
            return await asyncio.to_thread(outline, dropped, longest)
        summary = self._summaries[key] = truncate_middle(text, longest)
        return summary

    async def _write(
        self, writer: Destination, dropped: Sequence[Message], budget: int, longest: int
    ) -> str:
        """Ask for a summary; of less text, if the writer's window is smaller."""
        prompt = instruction(longest, self._prompts)
        for remaining in reversed(range(_SUMMARY_ATTEMPTS)):
            try:
                text = await asyncio.to_thread(transcript, dropped, budget)
                return await answer_of(writer, prompt, text)
            except ContextLengthExceeded as error:
                if not remaining:
                    raise
                if error.window:
                    budget = min(budget // 2, _MIN_BYTES_A_TOKEN * error.window)
                else:
                    budget //= 2
        raise AssertionError("the last attempt returns or raises")


def _digest(dropped: Sequence[Message], budget: int) -> bytes:
    text = transcript(dropped, budget)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()
