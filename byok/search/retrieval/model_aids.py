"""What models and a search server may add to a search; each is None where it is off.

Retrieval knows no upstream, no vector store and no server. It says here what it needs
of them, and `wiring` brings them together.
"""

import logging
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from byok.core.code_query import RemoteStatus
from byok.core.errors import ByokError, ConfigError, KeyMissing
from byok.search.index.store.chunk_index import ChunkScore, View

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from byok.search.index.engine import ContextEngine
    from byok.search.retrieval.excerpts import CurrentFiles
    from byok.search.retrieval.query import Query
    from byok.search.retrieval.rank import RankedFile
    from byok.search.retrieval.scope import Scope


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
    """Vectors of the chunks in an index (`byok.search.vectors.service`)."""

    async def open(self, engine: "ContextEngine") -> None:
        """Use this index, which was just opened; it may be filled from now on."""

    async def close(self) -> None:
        """Let go of the index; it is closed next."""

    async def begin(self, question: str) -> FindNear | None:
        """Return what finds chunks near to a question; None if there is no vector.

        Failures of the embedder are noted in its status and never raised.
        """


# Gives a query with words of code for a question, the same if no model answers in time.
# The function tells whether code has the words that the question says; it may block.
NameWords: TypeAlias = Callable[[str, "Query", Callable[[], bool]], Awaitable["Query"]]

# Gives the lines of a ranked file's best chunks, best chunk first, with secrets masked;
# none if they cannot be had. It blocks.
ReadChunks: TypeAlias = Callable[["RankedFile"], Sequence[Sequence[str]]]


# Gives the same files in a better order for a question, or as they are; never raises.
Rerank: TypeAlias = Callable[
    [str, "Query", Sequence["RankedFile"], ReadChunks], Awaitable[list["RankedFile"]]
]


class RemoteAnswer(Protocol):
    """What a search server found for one question, or why it was left out."""

    def write(
        self,
        files: "Sequence[RankedFile]",
        current: "CurrentFiles | None",
        length: int,
    ) -> str:
        """Return the text below a local answer of `files`, at most a share of `length`.

        "" if there is nothing to say. It blocks.
        """

    def describe(
        self,
        files: "Sequence[RankedFile]",
        current: "CurrentFiles | None",
        lines: int,
    ) -> list[dict[str, Any]]:
        """Return the server's files as hits, best first, beside local `files`.

        A hit has its repository and revision, and with `lines` so many of each chunk.
        It blocks.
        """

    @property
    def note(self) -> str:
        """Why the server was left out, "" if it was not."""


class AsksRemote(Protocol):
    """A search server that the user's organisation runs (`byok.search.remote`)."""

    @property
    def status(self) -> RemoteStatus:
        """What it does now; reads a small file."""

    def begin(
        self, question: str, roots: "Sequence[Path]"
    ) -> "asyncio.Task[RemoteAnswer]":
        """Ask, and return what has the hits in time; it never fails.

        What is in the repositories of `roots` is left out.
        """


class ModelAids(Struct, frozen=True):
    """The parts that the user switched on."""

    words: NameWords | None = None
    rerank: Rerank | None = None
    vectors: VectorSearch | None = None
    remote: AsksRemote | None = None

    @property
    def has_models(self) -> bool:
        """Whether a model adds anything; a search server does not change ranks."""
        return (self.words, self.rerank, self.vectors) != (None, None, None)

    @asynccontextmanager
    async def ask_remote(
        self, question: str, scope: "Scope"
    ) -> "AsyncIterator[asyncio.Task[RemoteAnswer] | None]":
        """Ask the search server, if there is one, while the block searches here."""
        if self.remote is None:
            yield None
            return
        hits = self.remote.begin(question, [space.root for space in scope.workspaces])
        try:
            yield hits
        finally:
            hits.cancel()


# When a model of the user's is left alone: after a failure, and longer each time.


_log = logging.getLogger(__name__)
_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0
_MOST_DOUBLED = 9


class ModelCooldown:
    """Keeps searches from waiting in vain for a model.

    `without` says in the log what happens while it is not asked, such as "files keep
    their order".
    """

    def __init__(
        self, without: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._without = without
        self._clock = clock
        self._retry_time = float("-inf")  # when
        self._failures = 0  # one after the other
        self._was_told = False  # that it may not be asked

    @property
    def is_over(self) -> bool:
        """Whether the model may be asked."""
        return self._clock() >= self._retry_time

    def record_success(self) -> None:
        """Note that the model gave a usable answer."""
        self._failures = 0

    def record_failure(self, error: ByokError) -> None:
        """Begin a rest, but not if the model may only not be asked here.

        Its upstream may be one that the chats of another window go to.
        """
        if isinstance(error, ConfigError) and not isinstance(error, KeyMissing):
            if not self._was_told:
                _log.warning("%s: %s", self._without, error.log_text)
            self._was_told = True
            return
        seconds = min(_PAUSE * 2 ** min(self._failures, _MOST_DOUBLED), _LONGEST_PAUSE)
        self._failures += 1
        self.begin(error.log_text, seconds)

    def begin(self, reason: str, seconds: float = _LONGEST_PAUSE) -> None:
        """Let the model rest for so long."""
        self._retry_time = self._clock() + seconds
        _log.warning(
            "%s; no model is asked for %d s: %s", self._without, seconds, reason
        )
