"""What the user's models may add to a search; each part is None where it is off.

Retrieval knows no upstream and no vector store. It says here what it needs of them, and
`wiring` brings the two together.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from byok.index.store.chunk_index import ChunkScore, View

if TYPE_CHECKING:  # a context that was not opened loads no index
    from byok.index.engine import ContextEngine
    from byok.retrieval.query import Query
    from byok.retrieval.rank import RankedFile


class AskModel(Protocol):
    """Asks one of the user's models a short question."""

    async def __call__(
        self, instruction: str, text: str, *, seconds: float, longest: int
    ) -> str:
        """Return the answer, cut at `longest` characters.

        Raises:
            ByokError: there is no usable answer, or none within `seconds`.
        """


class NearChunks(NamedTuple):
    """The chunks near to a question; scores are cosines.

    `nearest` are those of the whole view, nearest first. `best` has the nearest chunk
    of each blob that was asked for and has any vector.
    """

    nearest: Sequence[ChunkScore]
    best: Mapping[int, ChunkScore]


# Finds the chunks of a view that are near to one question, and the nearest of blobs.
FindNear: TypeAlias = Callable[[View, Collection[int]], Awaitable[NearChunks]]


class VectorSearch(Protocol):
    """Vectors of the chunks in an index (`byok.embeddings.service`)."""

    async def open(self, engine: "ContextEngine") -> None:
        """Use this index, which was just opened; it may be filled from now on."""

    async def close(self) -> None:
        """Let go of the index; it is closed next."""

    async def begin(self, question: str) -> FindNear | None:
        """Return what finds chunks near to a question; None if there is no vector.

        Failures of the embedder are noted in its status and never raised.
        """


class Translate(Protocol):
    """Asks a model for a question in English."""

    async def __call__(self, question: str, query: "Query") -> "Query":
        """Return the query with English terms; the same if no model answers in time."""


# Gives the lines of a ranked file's best chunks, best chunk first, with secrets masked;
# none if they cannot be had. It blocks.
ReadChunks: TypeAlias = Callable[["RankedFile"], Sequence[Sequence[str]]]


class Rerank(Protocol):
    """Asks a model for the order of the best files."""

    async def __call__(
        self,
        question: str,
        query: "Query",
        files: "Sequence[RankedFile]",
        read: ReadChunks,
    ) -> "list[RankedFile]":
        """Return the same files in a better order, or as they are; never raises."""


@dataclass(frozen=True, slots=True)
class ModelAids:
    """The parts that the user switched on."""

    translate: Translate | None = None
    rerank: Rerank | None = None
    vectors: VectorSearch | None = None
