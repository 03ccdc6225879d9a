"""One session: a model, the vectors it made, and an open index. Loads numpy."""

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
from byok.search.vectors.store.database import remove_aside
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.team_index import TeamIndex, TeamSearch
from byok.search.vectors.team.transfer import Repositories, TeamExchange, Transfer
from byok.search.vectors.types import Embedder, EmbeddingState, EmbeddingStatus
from byok.storage.database import today

if TYPE_CHECKING:
    from byok.search.vectors.store.database import Space
    from byok.search.vectors.types import Vectors


# The vectors of questions: asked for once, kept, and waited for by whoever asks.


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
        self._kept: BoundedMap[tuple[int, str], Vectors] = BoundedMap(kept)
        self._asked: dict[tuple[int, str], asyncio.Task[Vectors | None]] = {}

    async def find(self, question: str, space_id: int) -> "Vectors | None":
        """Return the vector of a question in a space; None if the model gives none.

        Whoever stops waiting does not stop the model: the answer is kept. Secrets are
        masked first.
        """
        lines = question[:_LONGEST].split("\n")
        text = "\n".join(mask_lines(lines))[:_MOST_CHARACTERS]
        wanted = space_id, text
        if (kept := self._kept.get(wanted)) is not None:
            return kept
        task = self._asked.get(wanted)
        if task is None:
            if len(self._asked) >= _AT_ONCE:
                return None
            task = self._asked[wanted] = asyncio.ensure_future(self._ask(wanted))
        await asyncio.wait([task])  # neither cancels it, nor is cancelled by `close`
        return None if task.cancelled() else task.result()

    async def close(self) -> None:
        """Stop asking."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, wanted: tuple[int, str]) -> "Vectors | None":
        try:
            async with asyncio.timeout(self._seconds):
                vector = await self._embedder.embed_question(wanted[1])
        except ByokError as error:
            self._note(error.sentence)
            return None
        except TimeoutError:
            self._note(f"The embedding model did not answer in {self._seconds:g} s.")
            return None
        finally:
            del self._asked[wanted]
        self.error = ""
        self._kept[wanted] = vector
        return vector

    def _note(self, failure: str) -> None:
        if failure != self.error:
            _log.warning("a question has no vector: %s", failure)
        self.error = failure


_NOTHING = NearChunks([], {})


def clear_vectors(vectors: Path, index: Path) -> int:
    """Remove all stored vectors; return how many chunks had one. Blocks.

    A damaged database that was set aside goes, too.

    Raises:
        ByokError: they cannot be used.
    """
    store = VectorStore(vectors, index)
    try:
        count = sum(store.progress(space).embedded for space in store.spaces())
        store.clear()
        while store.tidy(today()):
            pass
    finally:
        store.close()
    remove_aside(vectors)
    return count


class Session:
    """Fills the store in the background, and finds what is near to questions."""

    def __init__(
        self,
        store: VectorStore,
        engine: ContextEngine,
        embedder: Embedder,
        team: TeamIndex | None,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Take an open store, which `close` closes.

        `redact` removes the user's own keys from code before it is cut.
        """
        self._store = store
        self._team = team
        self._questions = QuestionVectors(embedder)
        self._engine = engine
        self._team_search: TeamSearch | None = None
        exchange = None
        if team is not None:
            repositories_of = Repositories(engine).of_blobs
            exchange = TeamExchange(store, team, repositories_of)
            if team.status.searches:
                self._team_search = TeamSearch(team, store, repositories_of)
        self.filling = Filling(
            store,
            engine,
            embedder,
            team=exchange,
            texts_of=partial(texts_of, redact=redact),
        )
        self._error = ""  # of the last search
        self._is_closed = False

    def start(self, *, paused: bool) -> None:
        """Begin to fill, unless the user paused that."""
        if paused:
            self.filling.pause()
        self.filling.start()

    async def close(self) -> None:
        """Stop everything, and close the files, whatever of it fails."""
        self._is_closed = True
        async with AsyncExitStack() as last:
            last.push_async_callback(asyncio.to_thread, self._store.close)
            if self._team is not None:
                last.push_async_callback(self._team.close)
            await self._questions.close()
            await self.filling.close()

    # Questions

    async def begin(self, question: str) -> FindNear | None:
        """Return what finds chunks near to a question; None if there is no vector."""
        self.filling.check_model()
        space = self.filling.space
        if space is None:
            return None  # the model did not answer yet
        vector = await self._questions.find(question, space.id)
        return None if vector is None else partial(self._find, space, vector)

    async def _find(
        self, asked: "Space", vector: "Vectors", view: View, blob_ids: Collection[int]
    ) -> NearChunks:
        """Compare a question with the vectors of a view; nothing if that fails."""
        self.filling.note_asked(blob_ids)
        try:
            near = await asyncio.to_thread(self._search, asked, vector, view, blob_ids)
            if not near.nearest and self._team_search and self._is_current(asked):
                near = await self._team_search.near(asked, vector, view, blob_ids)
        except ByokError as error:
            self._error = error.sentence
            return _NOTHING
        self._error = ""
        return near

    def _search(
        self, asked: "Space", vector: "Vectors", view: View, blob_ids: Collection[int]
    ) -> NearChunks:
        space = self._store.space_for(asked)
        if space is None:
            return _NOTHING
        return self._store.near(space, vector, view, blob_ids)

    def _is_current(self, asked: "Space") -> bool:
        """Whether this is the space that the team was told to speak of."""
        now = self.filling.space
        return now is not None and now.id == asked.id

    # The team

    def transfer(self) -> Transfer:
        """Return what pushes to the team and pulls from it, in the space of now.

        Raises:
            ConfigError: there is no team.
            NotReady: the model did not tell its space yet.
        """
        if self._team is None:
            raise ConfigError(
                "The settings name no team.",
                hint="Set url and team in the section [embeddings.team].",
            )
        space = self.filling.space
        if space is None:
            raise NotReady("The embedding model did not answer yet.")
        return Transfer(
            self._team,
            self._store,
            space,
            may_go_on=lambda: not self._is_closed,
        )

    # Telling

    async def describe(self, status: EmbeddingStatus) -> EmbeddingStatus:
        """Return the status with how far this session is."""
        filling = self.filling
        chunks, embedded, refused = filling.progress
        space = filling.space
        state = filling.state
        if state is EmbeddingState.COMPLETE and self._engine.state is State.INDEXING:
            state = EmbeddingState.STANDBY  # what will be missing is not known yet
        status = replace(
            status,
            state=state,
            dimensions=space.name.dimensions if space else 0,
            chunks=chunks,
            embedded=embedded,
            refused=refused,
            error=filling.error or self._questions.error or self._error,
            note=self._team.status.note if self._team else "",
            team=self._team.status if self._team else None,
        )
        size = await asyncio.to_thread(lambda: self._store.bytes)
        return replace(status, bytes=size)
