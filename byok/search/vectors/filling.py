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

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError
from byok.search.index.contents import Contents, Entry
from byok.search.index.store.schema import SPAN_BYTES
from byok.search.index.types import Span
from byok.search.vectors.numeric import check_shape
from byok.search.vectors.recipe import ChunkText, is_embedded, texts_of
from byok.search.vectors.store.database import Space
from byok.search.vectors.store.listings import FillProgress
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.transfer import TeamExchange
from byok.search.vectors.types import Embedder, EmbeddingState, Key
from byok.storage.database import today

if TYPE_CHECKING:
    from byok.search.index.engine import ContextEngine


# Reads blobs, and makes the texts of their chunks.


# Makes the texts of a blob's chunks: path, lines, spans.
TextsOf: TypeAlias = Callable[[str, Sequence[str], Sequence[Span]], list[ChunkText]]
# Texts by blob; None for one that cannot be read.
Texts: TypeAlias = dict[int, list[ChunkText] | None]

_BLOBS, _CHUNKS = 24, 128  # in a group; one of both is enough
# Seconds of computing after which the thread rests, so that the event loop, which waits
# for the interpreter, need not wait until it is taken away: that takes 5 ms.
_BREATH, _REST = 0.001, 0.001
_TURN = 0.001  # seconds that a thread may keep the interpreter from the event loop


@contextmanager
def quick_turns() -> Iterator[None]:
    """Let the event loop wait at most a millisecond for threads that compute."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def group(blobs: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Cut blobs into groups that are read at once."""
    some: list[Entry] = []
    chunks = 0
    for blob in blobs:
        some.append(blob)
        chunks += len(blob.packed) // SPAN_BYTES
        if len(some) >= _BLOBS or chunks >= _CHUNKS:
            yield some
            some, chunks = [], 0
    if some:
        yield some


def read_texts(contents: Contents, blobs: Sequence[Entry], texts_of: TextsOf) -> Texts:
    """Return the texts of each blob's chunks; None if it cannot be read now.

    Blocks: reads files, and computes for a millisecond a file.
    """
    entries = contents.entries([blob.blob_id for blob in blobs])
    found: Texts = {}
    breath = time.monotonic()
    for blob in blobs:
        if time.monotonic() - breath > _BREATH:
            time.sleep(_REST)
            breath = time.monotonic()
        entry = entries.get(blob.blob_id)
        lines = None if entry is None else contents.lines_of(entry)
        if entry is None or lines is None or entry.packed != blob.packed:
            found[blob.blob_id] = None
        else:
            found[blob.blob_id] = texts_of(entry.path, lines, entry.spans)
    return found


def keys_of(found: Texts) -> dict[int, list[tuple[int, Key]]]:
    """Return the keys of each blob's chunks with their ordinals."""
    return {
        blob_id: [(chunk.ordinal, chunk.key) for chunk in texts or ()]
        for blob_id, texts in found.items()
    }


# Texts without a vector, and a blob that has them, by key.
Wanted: TypeAlias = dict[Key, tuple[str, int]]

_log = logging.getLogger(__name__)
_MOST_ASKED = 500  # blobs
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


class Filling(Struct, eq=False):
    """Fills the space of one embedder with vectors until it is closed.

    A `team` is asked before the model, and is offered what the model made. `space` is
    what is filled, None until the model answered for the first time, and `progress` how
    far it is; `error` is a sentence about the last failure, "" if all is well.
    """

    store: VectorStore
    engine: "ContextEngine"
    embedder: Embedder
    team: TeamExchange | None = None
    texts_of: TextsOf = texts_of
    probe_every: int = _PROBE_EVERY
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    space: Space | None = None
    progress: FillProgress = FillProgress(0, 0, 0)
    error: str = ""
    _asked: BoundedMap[int, int] = field(
        default_factory=lambda: BoundedMap[int, int](_MOST_ASKED)
    )
    _may_run: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _state: EmbeddingState = EmbeddingState.STANDBY
    _must_probe: bool = True
    _may_lack: bool = True  # vectors of blobs whose keys are known
    _batches: int = 0  # since the last probe
    _probed: float = 0.0  # when that was
    _counted: float = 0.0
    _seen: int = 0  # version of the index that was looked at
    _tidied: tuple[int, int] | None = None
    _tried: set[int] = set()  # blobs that lacked a vector

    def __post_init__(self) -> None:
        """Let it run; `start` begins."""
        self._may_run.set()

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
        """Go on after `pause`, once it is known that the model is still the same."""
        self._must_probe = True
        self._may_run.set()

    def note_asked(self, blob_ids: Iterable[int]) -> None:
        """Count the blobs that are hits of a question, best ones first."""
        for blob_id in list(blob_ids)[:_MOST_ASKED][::-1]:
            self._asked[blob_id] = (self._asked.get(blob_id) or 0) + 1

    def check_model(self) -> None:
        """Have the probe asked for, in the background, an hour after the last one."""
        if time.monotonic() - self._probed > _PROBE_SECONDS:
            self._must_probe = True

    @property
    def state(self) -> EmbeddingState:
        """What it does; FAILED if it ended by a mistake of byok's."""
        if self._task is not None and self._task.done():
            return EmbeddingState.FAILED
        return self._state if self._may_run.is_set() else EmbeddingState.PAUSED

    # The task

    async def _run(self) -> None:
        pause, doubt = _FIRST_PAUSE, 0.0
        while True:
            try:
                await self._fill()
                pause, doubt, self.error = _FIRST_PAUSE, 0.0, ""
                await self._tidy()
                await self._wait_for_change()
            except _Replaced:
                _log.warning("the embedding model was replaced; its vectors differ")
                if doubt:  # else a model by chance would be paid for without end
                    self._state, self.error = EmbeddingState.WAITING, _BY_CHANCE
                    await self.sleep(doubt)
                doubt = min(4 * doubt, _LONGEST_DOUBT) or _FIRST_DOUBT
            except ByokError as error:
                self._state, self.error = EmbeddingState.WAITING, error.sentence
                _log.warning("no vectors for %.0f s: %s", pause, error.log_text)
                self._look_again()
                self._must_probe = True  # the model may be another one afterwards
                await self.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _fill(self) -> None:
        """Fill until nothing is missing."""
        space = self.space
        if space is None:  # during a pause, too: questions need it
            space = await self._enter()
            self.error = ""
        await self._may_work()
        if self._must_probe:
            space = await self._enter()
        is_complete = False
        while not is_complete:
            await self._may_work()
            recipe = space.name.recipe
            self._seen = await asyncio.to_thread(self.store.index_version)
            await asyncio.to_thread(self.store.look, recipe, is_embedded)
            await self._count(space)
            asked = self._most_asked()
            blobs = await asyncio.to_thread(self.store.plan, recipe, asked, _PLANNED)
            if not blobs and self._may_lack:
                blobs = await self._find_incomplete(space, asked)
                self._may_lack = bool(blobs)
            is_complete = not blobs
            if blobs:
                self._state = EmbeddingState.FILLING
                with quick_turns():
                    await self._fill_blobs(space, blobs)
        if self._batches >= _MANY:
            await self._enter()
        await self._count(space)
        self._state, self.error = EmbeddingState.COMPLETE, ""

    def _most_asked(self) -> list[int]:
        """Return the blobs that questions were about lately, the most frequent first.

        Their vectors are made first.
        """
        latest_first = reversed(self._asked.items())
        ordered = sorted(latest_first, key=lambda row: -row[1])
        return [blob_id for blob_id, _ in ordered]

    def _look_again(self) -> None:
        """Look for blobs with known keys that lack vectors."""
        self._may_lack = True
        self._tried.clear()

    async def _may_work(self) -> None:
        """Wait until the user wants it and the words are indexed."""
        await self._may_run.wait()
        while self.engine.indexer.open_tasks:
            await self.sleep(_INDEX_SECONDS)
            await self._may_run.wait()

    async def _enter(self) -> Space:
        """Ask for the probe, and return the space that the model fills now."""
        name, probe = await self.embedder.probe()
        before = self.space
        space = await asyncio.to_thread(self.store.enter, name, probe)
        self.space = space
        self._batches, self._must_probe, self._probed = 0, False, time.monotonic()
        if self.team is not None:
            self.team.use(space)
        if before is not None and before.id != space.id:
            self._look_again()
            raise _Replaced
        return space

    async def _find_incomplete(
        self, space: Space, asked: Collection[int]
    ) -> list[Entry]:
        """Return blobs with known keys that lack a vector; each is tried once."""
        limit = _PLANNED + len(self._tried)
        found = await asyncio.to_thread(self.store.plan_missing, space, asked, limit)
        left = [blob for blob in found if blob.blob_id not in self._tried]
        self._tried.update(blob.blob_id for blob in left)
        return left

    async def _fill_blobs(self, space: Space, blobs: Sequence[Entry]) -> None:
        """Store vectors for what blobs lack; reads on while the model works."""
        groups = list(group(blobs))
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

    def _read(self, blobs: Sequence[Entry]) -> "asyncio.Future[Texts]":
        contents, make = self.engine.contents, self.texts_of
        return asyncio.ensure_future(
            asyncio.to_thread(read_texts, contents, blobs, make)
        )

    async def _list(self, space: Space, found: Texts) -> Wanted:
        """Note the keys of blobs; return the chunks that have no vector, by key."""
        keys = keys_of(found)
        absent = await asyncio.to_thread(self.store.list_chunks, space, keys)
        return {
            chunk.key: (chunk.text, blob_id)
            for blob_id, texts in found.items()
            for chunk in texts or ()
            if chunk.key in absent
        }

    async def _embed(self, space: Space, wanted: Wanted) -> None:
        """Store a vector for each text: the team's, else one of the model."""
        await self._may_run.wait()
        if self._batches >= self.probe_every:
            await self._enter()
        if self.team is not None:
            came = await self.team.fetch(space, list(wanted))
            wanted = {key: some for key, some in wanted.items() if key not in came}
        if wanted:
            texts = [text for text, _ in wanted.values()]
            vectors = await self.embedder.embed_documents(texts)
            check_shape(vectors, len(texts), space.name.dimensions)
            await asyncio.to_thread(self.store.put, space, list(wanted), vectors)
            self._batches += 1
            if self.team is not None:
                blobs = {key: blob_id for key, (_, blob_id) in wanted.items()}
                await self.team.offer(blobs, vectors)
        if time.monotonic() - self._counted > _COUNT_EVERY:
            await self._count(space)

    async def _count(self, space: Space) -> None:
        """Count what is done; a space that is nearly full answers from then on."""
        self.progress = await asyncio.to_thread(self.store.progress, space)
        self._counted = time.monotonic()
        if self.space == space and await asyncio.to_thread(
            self.store.settle, space, self.progress
        ):
            self.space = replace(space, is_ready=True)

    async def _wait_for_change(self) -> None:
        """Wait until the blobs of the index may have changed, or a probe is due."""
        version = self.store.index_version
        while not self._must_probe and await asyncio.to_thread(version) == self._seen:
            await self.sleep(_IDLE_SECONDS)

    async def _tidy(self) -> None:
        """Remove what is not needed, once a day and after a space was left."""
        doing = (today(), self.space.id if self.space else 0)
        while self._tidied != doing:
            if not await asyncio.to_thread(self.store.tidy, today()):
                self._tidied = doing
            await self.sleep(_TIDY_SECONDS)


def _log_mistake(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("vectors are made no more: a mistake of byok's", exc_info=error)
