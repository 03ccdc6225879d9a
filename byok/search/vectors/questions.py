"""The vectors of questions: asked for once, kept, and waited for by whoever asks."""

import asyncio
import logging
from typing import TYPE_CHECKING

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError
from byok.search.retrieval.masking import mask_lines
from byok.search.vectors.types import Embedder

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

_log = logging.getLogger(__name__)
_KEPT = 256  # of 1,024 numbers each: a megabyte
_LONGEST = 32_000  # characters of a question that are looked at
_MOST_CHARACTERS = 4000  # that are kept, and more than any model gets
_AT_ONCE = 8  # questions that the model is asked
# Longer than any search waits: the vector may serve when the question comes again.
_SECONDS = 15.0


class QuestionVectors:
    """Asks a model for the vectors of questions."""

    def __init__(
        self, embedder: Embedder, *, seconds: float = _SECONDS, kept: int = _KEPT
    ) -> None:
        self.error = ""  # the last failure; "" after a success
        self._embedder = embedder
        self._seconds = seconds
        self._kept: BoundedMap[str, Vectors] = BoundedMap(kept)
        self._asked: dict[str, asyncio.Task[Vectors | None]] = {}
        self._models = 0  # how often the model was replaced

    async def find(self, question: str) -> "Vectors | None":
        """Return the vector of a question, a row; None if the model gives none.

        Whoever stops waiting does not stop the model: the answer is kept. Secrets are
        masked first.
        """
        lines = question[:_LONGEST].split("\n")
        text = "\n".join(mask_lines(lines))[:_MOST_CHARACTERS]
        if (kept := self._kept.get(text)) is not None:
            return kept
        task = self._asked.get(text)
        if task is None:
            if len(self._asked) >= _AT_ONCE:
                return None
            task = self._asked[text] = asyncio.ensure_future(self._ask(text))
        await asyncio.wait([task])  # neither cancels it, nor is cancelled by `close`
        return None if task.cancelled() else task.result()

    def forget(self) -> None:
        """Forget every vector: the model was replaced."""
        self._kept.clear()
        self._models += 1  # what is asked for now is not kept

    async def close(self) -> None:
        """Stop asking."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, text: str) -> "Vectors | None":
        models = self._models
        try:
            async with asyncio.timeout(self._seconds):
                vector = await self._embedder.embed_question(text)
        except ByokError as error:
            self._note(error.sentence)
            return None
        except TimeoutError:
            self._note(f"The embedding model did not answer in {self._seconds:g} s.")
            return None
        finally:
            del self._asked[text]
        self.error = ""
        if models == self._models:
            self._kept[text] = vector
        return vector

    def _note(self, failure: str) -> None:
        if failure != self.error:
            _log.warning("a question has no vector: %s", failure)
        self.error = failure
