"""Let a small model name words of code for a question in other words.

The question is in another language, or in everyday English that code does not say. The
model is asked once for each question, and has a short time. Its words join those of
the tables, with no more weight. Whatever it says is untrusted: only a few word-like
tokens are taken from it. An answer that comes too late is kept for the next search with
the same question. After a failure the model is left alone for a while, and longer each
time it fails again.
"""

import asyncio
import re
import time
from collections.abc import Callable

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError, UpstreamGarbled
from byok.core.prompts.prompt_set import PromptSet
from byok.search.index.parse.tokens import IDEOGRAPHS, words
from byok.search.retrieval.concepts import MAX_WEIGHT as MAX_CONCEPT_WEIGHT
from byok.search.retrieval.foreign.words import MAX_WEIGHT, normalize, read_foreign
from byok.search.retrieval.masking import mask_lines
from byok.search.retrieval.model_aids import AskModel, ModelCooldown
from byok.search.retrieval.query import Query, names_code, with_english

_SECONDS, _LATEST_SECONDS = 1.5, 10.0
_LONGEST_READ, _LONGEST_QUESTION, _LONGEST_ANSWER = 10_000, 1_000, 200
_MOST_TAKEN, _MOST_KEPT, _MOST_PENDING = 12, 256, 4
_ENGLISH = re.compile(r"(?<![\w])[A-Za-z][A-Za-z0-9_]{1,39}(?![\w])")
_NOT_LATIN = "\u0370"


class ModelWords:
    """Asks a model for words of code (`byok.search.retrieval.model_aids.NameWords`)."""

    def __init__(
        self,
        ask: AskModel,
        prompts: PromptSet,
        *,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._instruction = prompts.render("translate").text
        self._seconds = seconds
        self._rest = ModelCooldown("words of code come from the tables alone", clock)
        self._kept = BoundedMap[str, tuple[str, ...]](_MOST_KEPT)
        self._pending: dict[str, asyncio.Future[tuple[str, ...]]] = {}

    async def __call__(
        self, question: str, query: Query, is_said: Callable[[], bool]
    ) -> Query:
        """Return the query with words of code; the same if no model answers in time."""
        if query.only_stop_words or query.identifier:
            return query
        text = await asyncio.to_thread(_mask_question, question)
        weight = MAX_WEIGHT
        if not await asyncio.to_thread(_is_foreign, text):
            is_clear = query.only_task_words or names_code(text)
            if is_clear or await asyncio.to_thread(is_said):
                return query
            weight = MAX_CONCEPT_WEIGHT
        found = self._kept.get(text)
        if found is None:
            found = await self._wait_for(text)
        return with_english(query, dict.fromkeys(found, weight)) if found else query

    async def _wait_for(self, text: str) -> tuple[str, ...]:
        """Return the model's words; none if it fails or needs too long."""
        pending = self._pending.get(text)
        if pending is None:
            busy = len(self._pending) >= _MOST_PENDING
            if busy or not self._rest.is_over:
                return ()
            pending = asyncio.ensure_future(self._ask_for(text))
            self._pending[text] = pending
            pending.add_done_callback(lambda _: self._pending.pop(text, None))
        done, _ = await asyncio.wait([pending], timeout=self._seconds)
        return pending.result() if done and not pending.cancelled() else ()

    async def _ask_for(self, text: str) -> tuple[str, ...]:
        """Ask the model, and keep what it says; none if it fails."""
        try:
            answer = await self._ask(
                self._instruction,
                text,
                seconds=_LATEST_SECONDS,
                longest=_LONGEST_ANSWER,
            )
            found = read_words(answer)
            if not found:
                raise UpstreamGarbled("the model named no words of code.")
        except ByokError as error:
            self._rest.record_failure(error)
            return ()
        self._rest.record_success()
        self._kept[text] = found
        return found


def read_words(answer: str) -> tuple[str, ...]:
    """Return the words that an answer names, at most twelve, in its order."""
    found = dict.fromkeys(_ENGLISH.findall(answer[:_LONGEST_ANSWER]))
    return tuple(found)[:_MOST_TAKEN]


def _mask_question(question: str) -> str:
    """Return a question on one line; keys are masked before anything of it is cut."""
    lines = mask_lines(normalize(question, _LONGEST_READ).splitlines())
    return " ".join(" ".join(lines).split())[:_LONGEST_QUESTION]


def _is_foreign(text: str) -> bool:
    """Tell whether a question has words that are surely of another language."""
    said = words(text)
    if any(
        word[0] >= IDEOGRAPHS or (word[0] >= _NOT_LATIN and len(word) > 1)
        for word in said
    ):
        return True
    return bool(read_foreign(said).english)
