"""One session: a model, its vectors, and an open index. Loads numpy."""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError, ConfigError, NotReady
from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import View
from byok.search.index.types import State
from byok.search.retrieval.masking import mask_lines
from byok.search.retrieval.model_aids import FindNear, NearChunks
from byok.search.vectors.filling import Filling
from byok.search.vectors.recipe import texts_of
from byok.search.vectors.store.database import remove_set_aside_files
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.team_index import TeamIndex
from byok.search.vectors.team.transfer import Repositories, TeamExchange
from byok.search.vectors.types import Embedder, EmbeddingState, EmbeddingStatus
from byok.storage.database import today

if TYPE_CHECKING:
    from byok.search.vectors.store.database import Space
    from byok.search.vectors.types import Vectors

_log = logging.getLogger(__name__)
_MAX_CACHED = 256  # vectors; with 1,024 numbers each, a megabyte
_MAX_QUESTION_CHARS = 32_000  # that are masked
_MAX_MASKED_CHARS = 4000  # of the cached text, which is more than any model gets
_MAX_REQUESTS = 8  # at the same time
# Longer than any search waits: the vector can serve when the question comes again.
_TIMEOUT = 15.0  # seconds
_NOTHING = NearChunks([], {})


class Session:
    """Fills the store in the background, and finds the chunks nearest to questions."""

    def __init__(
        self,
        store: VectorStore,
        engine: ContextEngine,
        embedder: Embedder,
        team: TeamIndex | None,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Use an open store, which `close` closes.

        `redact` removes the user's own keys from code before it is cut.
        """
        self._store = store
        self._team: TeamExchange | None = None
        if team is not None:
            self._team = TeamExchange(
                store,
                team,
                Repositories(engine).of_blobs,
                may_go_on=lambda: not self._is_closed,
            )
        self._questions = QuestionVectors(embedder)
        self._engine = engine
        self.filling = Filling(
            store,
            engine,
            embedder,
            team=self._team,
            texts_of=partial(texts_of, redact=redact),
        )
        self._error = ""  # of the last search
        self._is_closed = False

    def start(self, *, paused: bool) -> None:
        """Start filling; if `paused`, it waits until it is resumed."""
        if paused:
            self.filling.pause()
        self.filling.start()

    async def close(self) -> None:
        """Stop everything and close the files, even if a part of it fails."""
        self._is_closed = True
        async with AsyncExitStack() as cleanup:
            cleanup.push_async_callback(asyncio.to_thread, self._store.close)
            if self._team is not None:
                cleanup.push_async_callback(self._team.team.close)
            await self._questions.close()
            await self.filling.close()

    # Questions

    async def begin(self, question: str) -> FindNear | None:
        """Return a function that finds chunks near a question; None without vector."""
        self.filling.check_model()
        space = self.filling.space
        if space is None:
            return None  # the model did not answer yet
        vector = await self._questions.find(question, space.id)
        return None if vector is None else partial(self._find, space, vector)

    async def _find(
        self, target: "Space", vector: "Vectors", view: View, blob_ids: Collection[int]
    ) -> NearChunks:
        """Return the nearest chunks of a view; none if that fails."""
        self.filling.count_hits(blob_ids)
        try:
            near = await asyncio.to_thread(self._search, target, vector, view, blob_ids)
            current = self.filling.space  # the one that is shared with the team
            is_shared = current is not None and current.id == target.id
            if (
                not near.nearest
                and is_shared
                and self._team is not None
                and self._team.team.status.searches
            ):
                near = await self._team.near(target, vector, view, blob_ids)
        except ByokError as error:
            self._error = error.sentence
            return _NOTHING
        self._error = ""
        return near

    def _search(
        self, target: "Space", vector: "Vectors", view: View, blob_ids: Collection[int]
    ) -> NearChunks:
        space = self._store.space_for(target)
        if space is None:
            return _NOTHING
        return self._store.near(space, vector, view, blob_ids)

    # The team

    def exchange(self) -> "tuple[TeamExchange, Space]":
        """Return the exchange with the team, and the current space.

        Raises:
            ConfigError: there is no team.
            NotReady: the model did not answer yet, so there is no space.
        """
        if self._team is None:
            raise ConfigError(
                "The settings name no team.",
                hint="Set url and team in the section [embeddings.team].",
            )
        space = self.filling.space
        if space is None:
            raise NotReady("The embedding model did not answer yet.")
        return self._team, space

    # Status

    async def describe(self, status: EmbeddingStatus) -> EmbeddingStatus:
        """Return the status with the progress of this session."""
        filling = self.filling
        chunks, embedded, refused = filling.progress
        space = filling.space
        team = self._team.team.status if self._team else None
        state = filling.state
        if state is EmbeddingState.COMPLETE and self._engine.state is State.INDEXING:
            state = EmbeddingState.STANDBY  # more chunks will need vectors
        return replace(
            status,
            state=state,
            dimensions=space.name.dimensions if space else 0,
            chunks=chunks,
            embedded=embedded,
            refused=refused,
            error=filling.error or self._questions.error or self._error,
            bytes=await asyncio.to_thread(lambda: self._store.bytes),
            note=team.note if team else "",
            team=team,
        )


class QuestionVectors:
    """The vectors of questions: each is requested once, and cached."""

    def __init__(
        self, embedder: Embedder, *, seconds: float = _TIMEOUT, kept: int = _MAX_CACHED
    ) -> None:
        self.error = ""  # the last failure; "" after a success
        self._embedder = embedder
        self._seconds = seconds
        self._cache: BoundedMap[tuple[int, str], Vectors] = BoundedMap(kept)
        self._requests: dict[tuple[int, str], asyncio.Task[Vectors | None]] = {}

    async def find(self, question: str, space_id: int) -> "Vectors | None":
        """Return the vector of a question in a space; None if the model gives none.

        Cancelling this call does not cancel the request: its answer is cached. Secrets
        are masked first.
        """
        lines = question[:_MAX_QUESTION_CHARS].split("\n")
        text = "\n".join(mask_lines(lines))[:_MAX_MASKED_CHARS]
        key = space_id, text
        if (cached := self._cache.get(key)) is not None:
            return cached
        task = self._requests.get(key)
        if task is None:
            if len(self._requests) >= _MAX_REQUESTS:
                return None
            task = self._requests[key] = asyncio.ensure_future(self._request(key))
        await asyncio.wait([task])  # neither cancels it, nor is cancelled by `close`
        return None if task.cancelled() else task.result()

    async def close(self) -> None:
        """Cancel all requests."""
        tasks = list(self._requests.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _request(self, key: tuple[int, str]) -> "Vectors | None":
        try:
            async with asyncio.timeout(self._seconds):
                vector = await self._embedder.embed_question(key[1])
        except ByokError as error:
            self._report(error.sentence)
            return None
        except TimeoutError:
            self._report(f"The embedding model did not answer in {self._seconds:g} s.")
            return None
        finally:
            del self._requests[key]
        self.error = ""
        self._cache[key] = vector
        return vector

    def _report(self, failure: str) -> None:
        if failure != self.error:
            _log.warning("a question has no vector: %s", failure)
        self.error = failure


def clear_vectors(vectors: Path, index: Path) -> int:
    """Remove all stored vectors; return how many chunks had one. Blocks.

    A damaged database that was set aside is removed, too.

    Raises:
        ByokError: the files cannot be used.
    """
    store = VectorStore(vectors, index)
    try:
        count = sum(store.progress(space).embedded for space in store.spaces())
        store.clear()
        while store.tidy(today()):
            pass
    finally:
        store.close()
    remove_set_aside_files(vectors)
    return count
