"""Short questions: a few hundred tokens go to one model, and a few words come back.

byok asks them for itself while somebody waits for something else: for the order of
files, for a translation. So they end early, by length and by time, and nobody but the
chosen model is asked: whoever gets no answer does without one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from byok.core.chat import ChatRequest, Message, Role, Sampling, TextPart
from byok.core.errors import UpstreamEmpty, UpstreamTimeout
from byok.core.events import TextDelta, Usage
from byok.core.record import current_record
from byok.upstream.ask import ask
from byok.upstream.base import Destination

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
    longest: int | None = None,
    sampling: Sampling = _NO_WISHES,
) -> str:
    """Ask one question, as a single user message; return the answer's text.

    A single message cannot be compacted, so it never needs a summary itself. Nothing
    is read after `longest` characters.

    Raises:
        ByokError: there is no usable answer.
    """
    chat = ChatRequest(
        (
            Message(Role.SYSTEM, (TextPart(instruction),)),
            Message(Role.USER, (TextPart(text),)),
        ),
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
