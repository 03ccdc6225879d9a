"""The interfaces of models and of a search server that can improve a search.

Retrieval knows no upstream, no vector store and no server. It declares here what it
needs of them, and `wiring` connects them. Each part is None while it is off.
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

_log = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 60.0, 3600.0
_MAX_DOUBLINGS = 9


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

    `nearest` are the nearest chunks of the whole view, nearest first. `best` has the
    nearest chunk of each requested blob, by blob id, if the blob has any vector.
    """

    nearest: Sequence[ChunkScore]
    best: Mapping[int, ChunkScore]


# Finds the chunks of a view that are near to one question, and the nearest chunk of
# each of the blobs.
FindNear: TypeAlias = Callable[[View, Collection[int]], Awaitable[NearChunks]]


class VectorSearch(Protocol):
    """Vectors of the chunks in an index (`byok.search.vectors.service`)."""

    async def open(self, engine: "ContextEngine") -> None:
        """Start to use an index that was just opened, and to compute vectors for it."""

    async def close(self) -> None:
        """Stop using the index, which is closed next."""

    async def begin(self, question: str) -> FindNear | None:
        """Return what finds the chunks near to a question; None without a vector.

        Failures of the embedder appear in its status and are never raised.
        """


# Returns the query with words of code for a question added, or unchanged if no model
# answers in time. The function tells whether one piece of code has most of the
# question's words; it may block.
NameWords: TypeAlias = Callable[[str, "Query", Callable[[], bool]], Awaitable["Query"]]
# Returns the lines of a ranked file's best chunks, best chunk first, with secrets
# masked; () if they cannot be read. It blocks.
ReadChunks: TypeAlias = Callable[["RankedFile"], Sequence[Sequence[str]]]
# Returns the same files in a better order for a question, or as they are; never raises.
Rerank: TypeAlias = Callable[
    [str, "Query", Sequence["RankedFile"], ReadChunks], Awaitable[list["RankedFile"]]
]


class RemoteAnswer(Protocol):
    """The hits of a search server for one question, or the reason why it has none."""

    def write(
        self,
        files: "Sequence[RankedFile]",
        current: "CurrentFiles | None",
        length: int,
    ) -> str:
        """Return the text below a local answer of `files`, at most a share of `length`.

        It is "" without hits and without a note. Blocks.
        """

    def describe(
        self,
        files: "Sequence[RankedFile]",
        current: "CurrentFiles | None",
        lines: int,
    ) -> list[dict[str, Any]]:
        """Return the server's files as hits, best first, scored beside local `files`.

        A hit has its repository and revision, and with `lines` that many lines of each
        chunk. Blocks.
        """

    @property
    def note(self) -> str:
        """Why the server was left out, "" if it was not."""


class RemoteSearcher(Protocol):
    """A search server that the user's organisation runs (`byok.search.remote`)."""

    @property
    def status(self) -> RemoteStatus:
        """Its current state; reads a small file."""

    def begin(
        self, question: str, roots: "Sequence[Path]"
    ) -> "asyncio.Task[RemoteAnswer]":
        """Start to ask, and return a task for the hits, which never fails.

        Hits in the repositories of `roots` are left out.
        """


class ModelAids(Struct, frozen=True):
    """The parts that the user switched on; each is None while it is off."""

    words: NameWords | None = None
    rerank: Rerank | None = None
    vectors: VectorSearch | None = None
    remote: RemoteSearcher | None = None

    @property
    def has_models(self) -> bool:
        """Whether a model adds anything; a search server does not change ranks."""
        return (self.words, self.rerank, self.vectors) != (None, None, None)

    @asynccontextmanager
    async def ask_remote(
        self, question: str, scope: "Scope"
    ) -> "AsyncIterator[asyncio.Task[RemoteAnswer] | None]":
        """Ask the search server, if any, while the `with` block searches the index."""
        if self.remote is None:
            yield None
            return
        task = self.remote.begin(question, [space.root for space in scope.workspaces])
        try:
            yield task
        finally:
            task.cancel()


class ModelCooldown(Struct, eq=False):
    """A pause after failures of a model, so that searches do not wait for it in vain.

    Each further failure doubles it. `without` is the consequence for the log, such as
    "files keep their order".
    """

    without: str
    clock: Callable[[], float] = time.monotonic
    _retry_time: float = float("-inf")
    _failures: int = 0  # since the last usable answer
    _was_config_error_logged: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the model may be asked."""
        return self.clock() >= self._retry_time

    def record_success(self) -> None:
        """Record that the model gave a usable answer."""
        self._failures = 0

    def record_failure(self, error: ByokError) -> None:
        """Start a cooldown, unless the error is one of the configuration.

        That may concern one window only: the chats of another window may go to an
        upstream that works.
        """
        if isinstance(error, ConfigError) and not isinstance(error, KeyMissing):
            if not self._was_config_error_logged:
                _log.warning("%s: %s", self.without, error.log_text)
            self._was_config_error_logged = True
            return
        doublings = min(self._failures, _MAX_DOUBLINGS)
        seconds = min(_FIRST_PAUSE_SECONDS * 2**doublings, _MAX_PAUSE_SECONDS)
        self._failures += 1
        self.begin(error.log_text, seconds)

    def begin(self, reason: str, seconds: float = _MAX_PAUSE_SECONDS) -> None:
        """Start a cooldown of so many seconds."""
        self._retry_time = self.clock() + seconds
        _log.warning(
            "%s; no model is asked for %d s: %s", self.without, seconds, reason
        )
