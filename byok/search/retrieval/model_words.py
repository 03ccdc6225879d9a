"""Let a small model name words of code for a question that has none.

The question is in another language, or in everyday English that code does not use. The
model is asked once for each question, and has a short time. Its words are added to
those of the tables, with the same weight. Its answer is untrusted: only a few word-like
tokens of it are used. An answer that comes too late is cached for the next search with
the same question. After a failure a cooldown begins, longer after each further failure.
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

_SECONDS, _MAX_SECONDS = 1.5, 10.0
_MAX_READ_CHARS, _MAX_QUESTION_CHARS, _MAX_ANSWER_CHARS = 10_000, 1_000, 200
_MAX_WORDS, _MAX_CACHED_ANSWERS, _MAX_PENDING = 12, 256, 4
_WORD = re.compile(r"(?<![\w])[A-Za-z][A-Za-z0-9_]{1,39}(?![\w])")
_FIRST_NON_LATIN = "\u0370"


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
        without = "words of code come from the tables alone"
        self._cooldown = ModelCooldown(without, clock)
        self._answer_cache = BoundedMap[str, tuple[str, ...]](_MAX_CACHED_ANSWERS)
        self._pending: dict[str, asyncio.Future[tuple[str, ...]]] = {}

    async def __call__(
        self, question: str, query: Query, has_most_words: Callable[[], bool]
    ) -> Query:
        """Return the query with words of code; the same if no model answers in time."""
        if query.only_stop_words or query.identifier:
            return query
        text = await asyncio.to_thread(_mask_question, question)
        weight = MAX_WEIGHT
        if not await asyncio.to_thread(_is_foreign, text):
            is_clear = query.only_task_words or names_code(text)
            if is_clear or await asyncio.to_thread(has_most_words):
                return query
            weight = MAX_CONCEPT_WEIGHT
        code_words = self._answer_cache.get(text)
        if code_words is None:
            code_words = await self._wait_for(text)
        if not code_words:
            return query
        return with_english(query, dict.fromkeys(code_words, weight))

    async def _wait_for(self, text: str) -> tuple[str, ...]:
        """Return the model's words; () if it fails or needs too long."""
        pending = self._pending.get(text)
        if pending is None:
            busy = len(self._pending) >= _MAX_PENDING
            if busy or not self._cooldown.is_over:
                return ()
            pending = asyncio.ensure_future(self._request_words(text))
            self._pending[text] = pending
            pending.add_done_callback(lambda _: self._pending.pop(text, None))
        done, _ = await asyncio.wait([pending], timeout=self._seconds)
        return pending.result() if done and not pending.cancelled() else ()

    async def _request_words(self, text: str) -> tuple[str, ...]:
        """Ask the model, and cache its words; () if it fails."""
        try:
            answer = await self._ask(
                self._instruction,
                text,
                seconds=_MAX_SECONDS,
                longest=_MAX_ANSWER_CHARS,
            )
            code_words = read_words(answer)
            if not code_words:
                raise UpstreamGarbled("the model named no words of code.")
        except ByokError as error:
            self._cooldown.record_failure(error)
            return ()
        self._cooldown.record_success()
        self._answer_cache[text] = code_words
        return code_words


def read_words(answer: str) -> tuple[str, ...]:
    """Return the words of an answer, at most twelve, in its order."""
    unique_words = dict.fromkeys(_WORD.findall(answer[:_MAX_ANSWER_CHARS]))
    return tuple(unique_words)[:_MAX_WORDS]


def _mask_question(question: str) -> str:
    """Return a question on one line; keys are masked before it is cut."""
    lines = mask_lines(normalize(question, _MAX_READ_CHARS).splitlines())
    return " ".join(" ".join(lines).split())[:_MAX_QUESTION_CHARS]


def _is_foreign(text: str) -> bool:
    """Tell whether a question surely has words of another language."""
    question_words = words(text)
    if any(
        word[0] >= IDEOGRAPHS or (word[0] >= _FIRST_NON_LATIN and len(word) > 1)
        for word in question_words
    ):
        return True
    return bool(read_foreign(question_words).english)
