"""An embedding model inside the test, which is asked without any HTTP."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byok.core.errors import UpstreamUnreachable
from byok.search.vectors.types import EmbeddingTarget, SpaceName
from tests.fakes.vectors import vector, vectors

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

LOCAL = EmbeddingTarget("near", "localhost:11434", "model", is_local=True, price=0.0)
FAR = EmbeddingTarget("far", "api.example:443", "model", is_local=False, price=0.02)


class InnerModel:
    """An embedder; `failure` is raised by whatever is asked of it."""

    def __init__(self, target: EmbeddingTarget = LOCAL) -> None:
        self.host, self.model = target.host, target.model
        self.texts: list[str] = []
        self.questions: list[str] = []
        self.failure: UpstreamUnreachable | None = None
        self.really = target.model  # what is behind the name
        self.dimensions = 16  # of the vectors of questions

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        self._check()
        self.texts += texts
        return vectors(texts, model=self.really)

    async def embed_question(self, text: str) -> "Vectors":
        self._check()
        self.questions.append(text)
        return vector(text, self.dimensions, self.really)

    async def probe(self) -> "tuple[SpaceName, Vectors]":
        self._check()
        return SpaceName(self.model, 16, "1"), vector("probe", model=self.really)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure
