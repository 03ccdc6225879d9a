"""byok's own questions: short ones, whom byok may ask them, and summaries.

byok asks them for itself while somebody waits for something else: for the order of
files, for words of code. So they end early, by length and by time, and nobody but the
chosen model is asked: whoever gets no answer does without one.

The questions of an agent tell what somebody works on, and so do the lines of code that
may come with them. Who lets only a model on this machine chat must not find them on
another one because a small model was named for titles. So the rule is:

    a model on this machine may be asked, and one elsewhere only if its upstream is one
    that chats go to

The chats of a window of an editor go to the upstreams that were chosen in it since the
start (`router.py`). For a window without a chat, and for programs that have none,
it is the upstream of `[routing.models] chat`, else that of the default model, and those
behind it in `[routing.fallback]`; none, where the official service answers chats. That
clients may choose other models does not count: they need not have done so.
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

PICTURE = "picture"  # the prompt of questions about pictures
_NO_WISHES = Sampling()
# No reasoning: it takes longer than anybody waits here.
_BRIEF = Sampling(temperature=0.0, effort="none")
# A model that cannot help reasoning a little, or that greets first, still answers.
_MORE_TOKENS = 64


class ShortQuestion:
    """Asks a model short questions (`byok.search.retrieval.model_aids.AskModel`).

    `find` returns who is asked, by the settings in force; it may refuse.
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
        # A token is a character at least, or the end.
        sampling = replace(_BRIEF, max_tokens=longest + _MORE_TOKENS)
        name = ""
        try:
            async with asyncio.timeout(seconds):
                asked = await self._find()
                name = asked.upstream.name
                record = current_record()
                if not record.upstream:
                    record.upstream, record.model = name, asked.model
                return await answer_of(
                    asked, instruction, text, longest=longest, sampling=sampling
                )
        except TimeoutError as error:
            raise UpstreamTimeout(
                f"it gave no answer to a short question within {seconds:g} s.",
                upstream=name,
            ) from error


async def answer_of(
    asked: Destination,
    instruction: str,
    text: str,
    *,
    pictures: tuple[ImagePart, ...] = (),
    longest: int | None = None,
    sampling: Sampling = _NO_WISHES,
) -> str:
    """Ask one question, as a single user message; return the answer's text.

    A single message cannot be compacted, so it never needs a summary itself. Nothing
    is read after `longest` characters. A model that sees no `pictures` is not asked.

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
    said, length, usage = list[str](), 0, Usage()
    record = current_record()
    name = asked.upstream.name
    record.uncounted.append((name, asked.model))
    async with aclosing(ask(asked, chat)) as batches:
        async for batch in batches:
            for event in batch:
                if isinstance(event, TextDelta):
                    said.append(event.text)
                    length += len(event.text)
                elif isinstance(event, Usage):
                    usage = event
            if longest is not None and length >= longest:
                break
    if usage != Usage():
        record.uncounted.remove((name, asked.model))
        record.note_own_usage(name, asked.model, usage)
    if not (answer := "".join(said).strip()):
        raise UpstreamEmpty("it wrote nothing.", upstream=name)
    return answer[:longest]


class QuestionRoutes(Struct, frozen=True):
    """Routes byok's own questions by the settings in force.

    `chat_model` is the user's choice for chats that name no model, "" for the default,
    and None if no upstream answers chats.
    """

    fallbacks: Fallbacks
    chat_model: str | None

    async def find(self, wanted: str) -> Destination:
        """Return who answers for a model that the user named; "" is that of chats.

        Nobody stands behind it: a failure costs less than the wait for another one.

        Raises:
            ConfigError: it is on another machine, and chats do not go there.
        """
        router = self.fallbacks.router
        found = await router.choose_listed(wanted or self.chat_model or "")
        name = found.upstream.name
        if name in self.fallbacks.local or name in await self._upstreams_of_chats():
            return found
        raise ConfigError(
            f"it is asked nothing about code: no chat goes to {name}.",
            hint="byok sends its own questions only to models on this machine and to "
            "upstreams of [routing] default, models.chat and fallback.chat.",
            upstream=name,
        )

    async def _upstreams_of_chats(self) -> frozenset[str]:
        """Return the names of the upstreams that are asked, one if the other fails."""
        seen = current_record().chat_upstreams
        if seen is not None:
            return seen
        if self.chat_model is None:
            return frozenset()
        chosen = await self.fallbacks.router.choose_listed(self.chat_model)
        chain = await self.fallbacks.chain_of(chosen, Purpose.CHAT)
        return frozenset(asked.upstream.name for asked in chain)


# Summaries of what no longer fits into the context window, written by a model.


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
            return truncate_middle(kept, longest)
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
