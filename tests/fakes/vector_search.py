"""Vectors that a test makes up: what is near to any question is given."""

import asyncio
from collections.abc import Collection, Iterable

from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.retrieval.model_aids import FindNear, NearChunks


class FakeVectors:
    """Finds the same chunks for each question, once `come` is set."""

    def __init__(self, near: Iterable[ChunkScore] | None) -> None:
        self.near = None if near is None else list(near)
        self.come = asyncio.Event()
        self.come.set()
        self.questions: list[str] = []
        self.cancelled = 0
        self.asked: Collection[int] = ()

    async def open(self, engine: ContextEngine) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    async def begin(self, question: str) -> FindNear | None:
        """Return what finds the given chunks; None if none were given."""
        self.questions.append(question)
        try:
            await self.come.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return None if self.near is None else self._find

    async def _find(self, view: View, blob_ids: Collection[int]) -> NearChunks:
        self.asked = blob_ids
        return NearChunks([c for c in self.near or () if c.blob_id in view.ids], {})
