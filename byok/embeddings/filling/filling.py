"""Gives every chunk of code a vector, in the background, after the words are indexed.

Nothing is remembered but the rows of the store: what is missing is computed from them,
so a filling can be ended at any moment. The texts of a batch are stored in one
transaction, and none that is stored is asked for again.

A model may be replaced behind its name, also half way. So the vector of a fixed text is
asked for at the start, after each failure, every 32 batches, at the end, and hourly if
questions come. If it changed, vectors made since it was last right are dropped, and
another space is filled.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from byok.embeddings.filling import blob_texts
from byok.embeddings.filling.asked import AskedBlobs
from byok.embeddings.filling.exchange import TeamExchange, Wanted
from byok.embeddings.recipe import is_embedded, texts_of
from byok.embeddings.store.listings import FillProgress, FillStatus, ListedBlob
from byok.embeddings.store.quantise import check_shape
from byok.embeddings.store.spaces import Space
from byok.embeddings.store.store import VectorStore
from byok.embeddings.types import Embedder, EmbeddingState, TeamVectors
from byok.errors import ByokError
from byok.storage.database import today

if TYPE_CHECKING:
    from byok.index.engine import ContextEngine

_log = logging.getLogger(__name__)
_BATCH = 64
_PROBE_EVERY, _PROBE_SECONDS = 32, 3600.0  # batches, and while nothing is filled
_MANY = 4  # batches, after which the probe is asked for at the end too
_COUNT_EVERY = 2.0  # seconds
_PLANNED = 256  # blobs at once, so that what is asked for meanwhile comes soon
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_FIRST_DOUBT, _LONGEST_DOUBT = 60.0, 3600.0  # of a model that was replaced twice
_BY_CHANCE = "The embedding model gives other vectors for the same text each time."
_INDEX_SECONDS, _IDLE_SECONDS, _TIDY_SECONDS = 0.2, 2.0, 0.1


class _Replaced(Exception):
    """The model gives other vectors now."""


class Filling:
    """Fills the space of one embedder with vectors until it is closed."""

    def __init__(
        self,
        store: VectorStore,
        engine: "ContextEngine",
        embedder: Embedder,
        *,
        team: TeamVectors | None = None,
        repositories_of: Callable[[int], Sequence[str]] = lambda blob_id: (),
        texts_of: blob_texts.TextsOf = texts_of,
        is_embedded: Callable[[str], bool] = is_embedded,
        probe_every: int = _PROBE_EVERY,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Prepare; `start` begins.

        A `team` is asked before the model, and is offered what the model made, with the
        repositories of a blob.
        """
        self._store = store
        self._engine = engine
        self._embedder = embedder
        self._team = TeamExchange(store, team, repositories_of) if team else None
        self._texts_of = texts_of
        self._is_embedded = is_embedded
        self._probe_every = probe_every
        self._sleep = sleep
        self._asked = AskedBlobs()
        self._may_run = asyncio.Event()
        self._may_run.set()
        self._task: asyncio.Task[None] | None = None
        self._space: Space | None = None
        self._progress = FillProgress(0, 0, 0)
        self._state, self._error = EmbeddingState.STANDBY, ""
        self._must_probe = True
        self._may_lack = True  # vectors of blobs whose keys are known
        self._batches, self._probed = 0, 0.0  # since the last probe, and when it was
        self._counted = 0.0
        self._seen = 0  # version of the index that was looked at
        self._tidied: tuple[int, int] | None = None
        self._tried: set[int] = set()  # blobs that lacked a vector

    def start(self) -> None:
        """Begin to fill, in the running event loop."""
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(_log_mistake)

    async def close(self) -> None:
        """Stop at once; what was stored stays."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def pause(self) -> None:
        """Send nothing more until `resume`, but for the batch at hand."""
        self._may_run.clear()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._may_run.set()

    def note_asked(self, blob_ids: Iterable[int]) -> None:
        """Note which blobs were among the hits of a question, best ones first."""
        self._asked.note(blob_ids)

    def check_model(self) -> None:
        """Have the probe asked for, in the background, an hour after the last one."""
        if time.monotonic() - self._probed > _PROBE_SECONDS:
            self._must_probe = True

    @property
    def status(self) -> FillStatus:
        """What it does, at the moment."""
        state = self._state
        if self._task is not None and self._task.done():
            state = EmbeddingState.FAILED
        elif not self._may_run.is_set():
            state = EmbeddingState.PAUSED
        return FillStatus(state, self._space, self._progress, self._error)

    # The task

    async def _run(self) -> None:
        pause, doubt = _FIRST_PAUSE, 0.0
        while True:
            try:
                await self._fill()
                pause, doubt, self._error = _FIRST_PAUSE, 0.0, ""
                await self._tidy()
                await self._wait_for_change()
            except _Replaced:
                _log.warning("the embedding model was replaced; its vectors differ")
                if doubt:  # else a model by chance would be paid for without end
                    self._state, self._error = EmbeddingState.WAITING, _BY_CHANCE
                    await self._sleep(doubt)
                doubt = min(4 * doubt, _LONGEST_DOUBT) or _FIRST_DOUBT
            except ByokError as error:
                self._state, self._error = EmbeddingState.WAITING, error.sentence
                _log.warning("no vectors for %.0f s: %s", pause, error.log_text)
                self._look_again()
                self._must_probe = True  # the model may be another one afterwards
                await self._sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _fill(self) -> None:
        """Fill until nothing is missing."""
        await self._may_work()
        space = self._space
        if space is None or self._must_probe:
            space = await self._enter()
        is_complete = False
        while not is_complete:
            await self._may_work()
            recipe = space.name.recipe
            self._seen = await asyncio.to_thread(self._store.index_version)
            await asyncio.to_thread(self._store.look, recipe, self._is_embedded)
            await self._count(space)
            asked = self._asked.most()
            blobs = await asyncio.to_thread(self._store.plan, recipe, asked, _PLANNED)
            if not blobs and self._may_lack:
                blobs = await self._find_incomplete(space, asked)
                self._may_lack = bool(blobs)
            is_complete = not blobs
            if blobs:
                self._state = EmbeddingState.FILLING
                with blob_texts.quick_turns():
                    await self._fill_blobs(space, blobs)
        if self._batches >= _MANY:
            await self._enter()
        await self._count(space)
        self._state, self._error = EmbeddingState.COMPLETE, ""

    def _look_again(self) -> None:
        """Look for blobs with known keys that lack vectors."""
        self._may_lack = True
        self._tried.clear()

    async def _may_work(self) -> None:
        """Wait until the user wants it and the words are indexed."""
        await self._may_run.wait()
        while self._engine.indexer.open_tasks:
            await self._sleep(_INDEX_SECONDS)
            await self._may_run.wait()

    async def _enter(self) -> Space:
        """Ask for the probe, and return the space that the model fills now."""
        name, probe = await self._embedder.probe()
        before = self._space
        space = await asyncio.to_thread(self._store.enter, name, probe)
        self._space = space
        self._batches, self._must_probe, self._probed = 0, False, time.monotonic()
        if self._team is not None:
            self._team.use(space)
        if before is not None and before.id != space.id:
            self._look_again()
            raise _Replaced
        return space

    async def _find_incomplete(
        self, space: Space, asked: Collection[int]
    ) -> list[ListedBlob]:
        """Return blobs with known keys that lack a vector; each is tried once."""
        limit = _PLANNED + len(self._tried)
        found = await asyncio.to_thread(self._store.plan_missing, space, asked, limit)
        left = [blob for blob in found if blob.blob_id not in self._tried]
        self._tried.update(blob.blob_id for blob in left)
        return left

    async def _fill_blobs(self, space: Space, blobs: Sequence[ListedBlob]) -> None:
        """Store vectors for what blobs lack; reads on while the model works."""
        groups = list(blob_texts.group(blobs))
        wanted: Wanted = {}
        reading = self._read(groups[0])
        try:
            for following in [*groups[1:], None]:
                found = await reading
                if following is not None:
                    reading = self._read(following)
                wanted |= await self._list(space, found)
                while len(wanted) >= _BATCH or (wanted and following is None):
                    some = {key: wanted.pop(key) for key in list(wanted)[:_BATCH]}
                    await self._embed(space, some)
        finally:
            reading.cancel()

    def _read(self, blobs: Sequence[ListedBlob]) -> "asyncio.Future[blob_texts.Texts]":
        contents, make = self._engine.contents, self._texts_of
        return asyncio.ensure_future(
            asyncio.to_thread(blob_texts.read_texts, contents, blobs, make)
        )

    async def _list(self, space: Space, found: blob_texts.Texts) -> Wanted:
        """Note the keys of blobs; return the chunks that have no vector, by key."""
        keys = blob_texts.keys_of(found)
        absent = await asyncio.to_thread(self._store.list_chunks, space, keys)
        return {
            chunk.key: (chunk.text, blob_id)
            for blob_id, texts in found.items()
            for chunk in texts or ()
            if chunk.key in absent
        }

    async def _embed(self, space: Space, wanted: Wanted) -> None:
        """Store a vector for each text: the team's, else one of the model."""
        await self._may_run.wait()
        if self._batches >= self._probe_every:
            await self._enter()
        if self._team is not None:
            wanted = await self._team.fetch(space, wanted)
        if wanted:
            texts = [text for text, _ in wanted.values()]
            vectors = await self._embedder.embed_documents(texts)
            check_shape(vectors, len(texts), space.name.dimensions)
            await asyncio.to_thread(self._store.put, space, list(wanted), vectors)
            self._batches += 1
            if self._team is not None:
                await self._team.offer(wanted, vectors)
        if time.monotonic() - self._counted > _COUNT_EVERY:
            await self._count(space)

    async def _count(self, space: Space) -> None:
        """Count what is done; a space that is nearly full answers from then on."""
        self._progress = await asyncio.to_thread(self._store.progress, space)
        self._counted = time.monotonic()
        if self._space == space and await asyncio.to_thread(
            self._store.settle, space, self._progress
        ):
            self._space = replace(space, is_ready=True)

    async def _wait_for_change(self) -> None:
        """Wait until the blobs of the index may have changed, or a probe is due."""
        version = self._store.index_version
        while not self._must_probe and await asyncio.to_thread(version) == self._seen:
            await self._sleep(_IDLE_SECONDS)

    async def _tidy(self) -> None:
        """Remove what is not needed, once a day and after a space was left."""
        doing = (today(), self._space.id if self._space else 0)
        while self._tidied != doing:
            if not await asyncio.to_thread(self._store.tidy, today()):
                self._tidied = doing
            await self._sleep(_TIDY_SECONDS)


def _log_mistake(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("vectors are made no more: a mistake of byok's", exc_info=error)
