"""Gives every chunk of code a vector, in the background, after the words are indexed.

The only state is that of the store: missing vectors are computed from its rows, so
filling can be ended at any moment. The vectors of a batch are stored in one
transaction, and none is requested again.

A model may be replaced behind its name, even half way. So the vector of a fixed text,
the probe, is requested at the start, after each failure, every 32 batches, at the end,
and hourly if questions come. If it changed, the vectors made since the last unchanged
probe are dropped, and another space is filled.
"""

import asyncio
import logging
import sys
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from byok.core.bounded import BoundedMap, split_into_batches
from byok.core.errors import ByokError, UpstreamGarbled
from byok.search.index.contents import Contents, Entry
from byok.search.index.store.schema import SPAN_BYTES
from byok.search.index.types import Span
from byok.search.vectors.recipe import ChunkText, is_embedded, texts_of
from byok.search.vectors.store import listings
from byok.search.vectors.store.database import Space
from byok.search.vectors.store.listings import FillProgress
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.transfer import TeamExchange
from byok.search.vectors.types import Embedder, EmbeddingState, Key
from byok.storage.database import today

if TYPE_CHECKING:
    from byok.search.index.engine import ContextEngine

_log = logging.getLogger(__name__)
_GROUP_BLOBS, _GROUP_CHUNKS = 24, 128  # that are read together
# The reading thread pauses after so much computing. The event loop would otherwise have
# to wait until the interpreter is taken from the thread, which takes 5 ms.
_COMPUTE_SECONDS, _PAUSE_SECONDS = 0.001, 0.001
_SWITCH_SECONDS = 0.001  # that a thread may keep the interpreter from the event loop
_MAX_HIT_BLOBS = 500  # whose hits are counted
_BATCH_TEXTS = 64
# How often the probe is requested: while filling, and by questions while it is idle.
_PROBE_BATCHES, _PROBE_SECONDS = 32, 3600.0
_FINAL_PROBE_BATCHES = 4  # since the last probe, from which on one ends the filling
_COUNT_SECONDS = 2.0
_PLAN_BLOBS = 256  # at a time, so that blobs which questions hit meanwhile come soon
_FIRST_PAUSE, _MAX_PAUSE = 1.0, 60.0  # seconds, after a failure
# Seconds, after a model was replaced twice in a row.
_FIRST_REPLACED_PAUSE, _MAX_REPLACED_PAUSE = 60.0, 3600.0
_INDEX_SECONDS, _IDLE_SECONDS, _TIDY_SECONDS = 0.2, 2.0, 0.1
_RANDOM_VECTORS = "The embedding model gives other vectors for the same text each time."

# Makes the texts of a blob's chunks from its path, lines and spans.
TextsOf: TypeAlias = Callable[[str, Sequence[str], Sequence[Span]], list[ChunkText]]
# Texts by blob id; None for a blob that cannot be read.
Texts: TypeAlias = dict[int, list[ChunkText] | None]
# Texts without a vector by key, each with the id of a blob that has it.
MissingTexts: TypeAlias = dict[Key, tuple[str, int]]


class Filling(Struct, eq=False):
    """Fills the space of one embedder with vectors until it is closed.

    Vectors of a `team` are preferred to those of the model, and the model's are offered
    to it. `space` is None until the model answered for the first time. `error` is a
    sentence about the last failure, or "".
    """

    store: VectorStore
    engine: "ContextEngine"
    embedder: Embedder
    team: TeamExchange | None = None
    texts_of: TextsOf = texts_of
    probe_every: int = _PROBE_BATCHES
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    space: Space | None = None
    progress: FillProgress = FillProgress(0, 0, 0)
    error: str = ""
    _hit_counts: BoundedMap[int, int] = field(
        default_factory=lambda: BoundedMap[int, int](_MAX_HIT_BLOBS)
    )
    _may_run: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _state: EmbeddingState = EmbeddingState.STANDBY
    _must_probe: bool = True
    _may_be_incomplete: bool = True  # listed blobs may lack vectors
    _batches: int = 0  # since the last probe
    _probed_at: float = 0.0
    _counted_at: float = 0.0
    _seen_version: int = 0  # of the index, when its blobs were last listed
    _tidied_for: tuple[int, int] | None = None  # day and space id
    _tried_blobs: set[int] = set()  # listed blobs that lacked a vector

    def __post_init__(self) -> None:
        """Allow the task to run; `start` creates it."""
        self._may_run.set()

    def start(self) -> None:
        """Start filling, in the running event loop."""
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(_log_failure)

    async def close(self) -> None:
        """Stop at once; stored vectors stay."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def pause(self) -> None:
        """Send nothing more until `resume`, except for the current batch."""
        self._may_run.clear()

    def resume(self) -> None:
        """Go on after `pause`, first with a probe of the model."""
        self._must_probe = True
        self._may_run.set()

    def count_hits(self, blob_ids: Iterable[int]) -> None:
        """Count the blobs that are hits of a question, the best ones first."""
        for blob_id in list(blob_ids)[:_MAX_HIT_BLOBS][::-1]:
            self._hit_counts[blob_id] = (self._hit_counts.get(blob_id) or 0) + 1

    def check_model(self) -> None:
        """Request a probe in the background if the last one was an hour ago."""
        if time.monotonic() - self._probed_at > _PROBE_SECONDS:
            self._must_probe = True

    @property
    def state(self) -> EmbeddingState:
        """The current state; FAILED if the task ended by a bug."""
        if self._task is not None and self._task.done():
            return EmbeddingState.FAILED
        return self._state if self._may_run.is_set() else EmbeddingState.PAUSED

    async def _run(self) -> None:
        pause, replaced_pause = _FIRST_PAUSE, 0.0
        while True:
            try:
                await self._fill()
                pause, replaced_pause, self.error = _FIRST_PAUSE, 0.0, ""
                await self._tidy()
                await self._wait_for_change()
            except _Replaced:
                _log.warning("the embedding model was replaced; its vectors differ")
                # Without a pause, a model with random vectors would cost without end.
                if replaced_pause:
                    self._state, self.error = EmbeddingState.WAITING, _RANDOM_VECTORS
                    await self.sleep(replaced_pause)
                replaced_pause = min(4 * replaced_pause, _MAX_REPLACED_PAUSE)
                replaced_pause = replaced_pause or _FIRST_REPLACED_PAUSE
            except ByokError as error:
                self._state, self.error = EmbeddingState.WAITING, error.sentence
                _log.warning("no vectors for %.0f s: %s", pause, error.log_text)
                self._retry_incomplete()
                self._must_probe = True  # the model may be another one afterwards
                await self.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)

    async def _fill(self) -> None:
        """Fill until no vector is missing."""
        space = self.space
        if space is None:  # also during a pause, because questions need the space
            space = await self._probe_model()
            self.error = ""
        await self._wait_until_allowed()
        if self._must_probe:
            space = await self._probe_model()
        is_complete = False
        while not is_complete:
            await self._wait_until_allowed()
            recipe = space.name.recipe
            self._seen_version = await asyncio.to_thread(
                self.store.read, listings.index_version
            )
            await asyncio.to_thread(self.store.refresh_listing, recipe, is_embedded)
            await self._count(space)
            # Recent hits of questions come first, the most frequent ones before others.
            latest_first = reversed(self._hit_counts.items())
            hits = sorted(latest_first, key=lambda row: -row[1])
            first = [blob_id for blob_id, _ in hits]
            blobs = await asyncio.to_thread(
                self.store.read, listings.find_unlisted, recipe, first, _PLAN_BLOBS
            )
            if not blobs and self._may_be_incomplete:
                blobs = await self._find_incomplete(space, first)
                self._may_be_incomplete = bool(blobs)
            is_complete = not blobs
            if blobs:
                self._state = EmbeddingState.FILLING
                with short_switch_interval():
                    await self._fill_blobs(space, blobs)
        if self._batches >= _FINAL_PROBE_BATCHES:
            await self._probe_model()
        await self._count(space)
        self._state, self.error = EmbeddingState.COMPLETE, ""

    def _retry_incomplete(self) -> None:
        """Try listed blobs that lack vectors again."""
        self._may_be_incomplete = True
        self._tried_blobs.clear()

    async def _wait_until_allowed(self) -> None:
        """Wait while the user paused filling, or the indexer has tasks."""
        await self._may_run.wait()
        while self.engine.indexer.open_tasks:
            await self.sleep(_INDEX_SECONDS)
            await self._may_run.wait()

    async def _probe_model(self) -> Space:
        """Request the probe, and return the space of the present model.

        Raises:
            _Replaced: it is another space than before.
        """
        name, probe = await self.embedder.probe()
        previous = self.space
        space = await asyncio.to_thread(self.store.enter, name, probe)
        self.space = space
        self._batches, self._must_probe, self._probed_at = 0, False, time.monotonic()
        if self.team is not None:
            self.team.team.use(space.name, space.probe.ravel())
        if previous is not None and previous.id != space.id:
            self._retry_incomplete()
            raise _Replaced
        return space

    async def _find_incomplete(
        self, space: Space, preferred: Collection[int]
    ) -> list[Entry]:
        """Return listed blobs that lack a vector; each is tried once."""
        limit = _PLAN_BLOBS + len(self._tried_blobs)
        candidates = await asyncio.to_thread(
            self.store.read, listings.find_incomplete, space, preferred, limit
        )
        untried = [blob for blob in candidates if blob.blob_id not in self._tried_blobs]
        self._tried_blobs.update(blob.blob_id for blob in untried)
        return untried

    async def _fill_blobs(self, space: Space, blobs: Sequence[Entry]) -> None:
        """Store the missing vectors of blobs; reads ahead while the model works."""
        groups = [
            *split_into_batches(
                blobs,
                lambda blob: len(blob.packed) // SPAN_BYTES,
                max_size=_GROUP_CHUNKS,
                max_items=_GROUP_BLOBS,
            )
        ]
        missing: MissingTexts = {}
        reading = self._start_reading(groups[0])
        try:
            for following in [*groups[1:], None]:
                texts_by_blob = await reading
                if following is not None:
                    reading = self._start_reading(following)
                missing |= await self._list_missing(space, texts_by_blob)
                while len(missing) >= _BATCH_TEXTS or (missing and following is None):
                    batch = {
                        key: missing.pop(key) for key in list(missing)[:_BATCH_TEXTS]
                    }
                    await self._embed(space, batch)
        finally:
            reading.cancel()

    def _start_reading(self, blobs: Sequence[Entry]) -> "asyncio.Future[Texts]":
        contents, make = self.engine.contents, self.texts_of
        return asyncio.ensure_future(
            asyncio.to_thread(read_texts, contents, blobs, make)
        )

    async def _list_missing(self, space: Space, texts_by_blob: Texts) -> MissingTexts:
        """Store the keys of blobs; return their texts that have no vector."""
        keys = {
            blob_id: [(chunk.ordinal, chunk.key) for chunk in texts or ()]
            for blob_id, texts in texts_by_blob.items()
        }
        absent = await asyncio.to_thread(self.store.list_chunks, space, keys)
        return {
            chunk.key: (chunk.text, blob_id)
            for blob_id, texts in texts_by_blob.items()
            for chunk in texts or ()
            if chunk.key in absent
        }

    async def _embed(self, space: Space, missing: MissingTexts) -> None:
        """Store a vector for each text: the team's, otherwise one of the model."""
        await self._may_run.wait()
        if self._batches >= self.probe_every:
            await self._probe_model()
        if self.team is not None:
            fetched = await self.team.fetch(space, list(missing))
            missing = {key: row for key, row in missing.items() if key not in fetched}
        if missing:
            texts = [text for text, _ in missing.values()]
            vectors = await self.embedder.embed_documents(texts)
            shape = (len(texts), space.name.dimensions)
            if vectors.shape != shape:
                raise UpstreamGarbled(
                    f"{shape[0]} vectors of {shape[1]} numbers were asked for; the "
                    f"shape of what came is {vectors.shape}.",
                    code="embedding_garbled",
                )
            await asyncio.to_thread(self.store.put, space, list(missing), vectors)
            self._batches += 1
            if self.team is not None:
                blobs = {key: blob_id for key, (_, blob_id) in missing.items()}
                await self.team.offer(blobs, vectors)
        if time.monotonic() - self._counted_at > _COUNT_SECONDS:
            await self._count(space)

    async def _count(self, space: Space) -> None:
        """Count the vectors; a space that is nearly full answers questions alone."""
        self.progress = await asyncio.to_thread(self.store.progress, space)
        self._counted_at = time.monotonic()
        if self.space == space and await asyncio.to_thread(
            self.store.settle, space, self.progress
        ):
            self.space = replace(space, is_ready=True)

    async def _wait_for_change(self) -> None:
        """Wait until the blobs of the index may have changed, or a probe is due."""
        while (
            not self._must_probe
            and await asyncio.to_thread(self.store.read, listings.index_version)
            == self._seen_version
        ):
            await self.sleep(_IDLE_SECONDS)

    async def _tidy(self) -> None:
        """Remove unneeded rows, once a day and after the space changed."""
        target = (today(), self.space.id if self.space else 0)
        while self._tidied_for != target:
            if not await asyncio.to_thread(self.store.tidy, today()):
                self._tidied_for = target
            await self.sleep(_TIDY_SECONDS)


def read_texts(contents: Contents, blobs: Sequence[Entry], texts_of: TextsOf) -> Texts:
    """Return the texts of each blob's chunks; None if it cannot be read now.

    Blocks: reads files, and computes for a millisecond per file.
    """
    entries = contents.entries([blob.blob_id for blob in blobs])
    texts_by_blob: Texts = {}
    last_pause = time.monotonic()
    for blob in blobs:
        if time.monotonic() - last_pause > _COMPUTE_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            last_pause = time.monotonic()
        entry = entries.get(blob.blob_id)
        lines = None if entry is None else contents.lines_of(entry)
        if entry is None or lines is None or entry.packed != blob.packed:
            texts_by_blob[blob.blob_id] = None
        else:
            texts_by_blob[blob.blob_id] = texts_of(entry.path, lines, entry.spans)
    return texts_by_blob


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let the event loop wait at most a millisecond for computing threads."""
    previous = sys.getswitchinterval()
    sys.setswitchinterval(min(previous, _SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(previous)


class _Replaced(Exception):
    """The model gives other vectors now."""


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("vectors are made no more: a mistake of byok's", exc_info=error)
