"""What a member does with a team's collection: fetch, offer, ask for the nearest.

A collection is used after its probe was compared: it holds the vector of a text that
every member embeds too, so that a model replaced behind its name is noticed, and a
check of the salt. Only writers create anything.
"""

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
    Set,
)
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec import Struct

from byok.core.errors import (
    ByokError,
    ConfigError,
    NotReady,
    RefusalKind,
    UpstreamRefused,
)
from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.outside.server import Pause, SecretSource
from byok.search.retrieval.model_aids import NearChunks
from byok.search.vectors.numeric import cosine, normalise
from byok.search.vectors.store.database import SAME, Space
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.collection import (
    LOOKS,
    TeamCollection,
    TeamNames,
    TeamStore,
    collection_name,
)
from byok.search.vectors.types import Key, SpaceName, TeamStatus

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors


_T = TypeVar("_T")

_GONE = RefusalKind.NOT_FOUND
QUESTION_SECONDS = 0.4  # what a question waits for its vector, too


class TeamPlace(Struct, frozen=True):
    """Where a team's index is, which team, and what this member does beside reading.

    Who `writes` gives vectors; who `searches` sends the vectors of questions.
    """

    url: str
    team: str
    writes: bool = False
    searches: bool = False


class _Space(Struct):
    collection: TeamCollection
    probe: "Vectors"
    names: TeamNames | None = None  # set when the collection may be used


class TeamIndex:
    """Vectors that the members of a team share; off, slow or refusing, it has none.

    No method raises for what its server does or fails to do: the answer is then empty,
    `status` says why, and the server is left alone for a while. So `fetch` is called
    before texts are embedded, and the rest is embedded; nothing else depends on it.
    Vectors come as rows of `dimensions` 32-bit floats of length 1, and are checked.
    Repositories are given as `repository_name` returns them; "" is left out.
    """

    def __init__(
        self,
        place: TeamPlace,
        store: TeamStore,
        salt: SecretSource,
        *,
        pause: Pause | None = None,
        question_seconds: float = QUESTION_SECONDS,
    ) -> None:
        self._place = place
        self._store = store
        self._salt = salt
        self._pause = pause or Pause("the team's index")
        self._question_seconds = question_seconds
        self._space: _Space | None = None
        self._lock = asyncio.Lock()
        self._entering: asyncio.Task[object] | None = None
        self._fetched = self._pushed = 0

    @property
    def status(self) -> TeamStatus:
        """What it does now."""
        return TeamStatus(
            url=self._place.url,
            team=self._place.team,
            collection=self._space.collection.name if self._space else "",
            note=self._pause.note,
            next_try=self._pause.seconds,
            fetched=self._fetched,
            pushed=self._pushed,
            writes=self._place.writes,
            searches=self._place.searches,
        )

    def use(self, space: SpaceName, probe: "Vectors") -> None:
        """Use the collection of this space; `probe` is the vector of its probe text.

        Asks nobody. Call it first, and again whenever the model changed.
        """
        name = collection_name(self._place.team, space)
        now = self._space
        if (
            now is None
            or now.collection.name != name
            or cosine(now.probe, probe) < SAME
        ):
            collection = self._store.collection(name, space.dimensions)
            self._space = _Space(collection, probe)

    async def fetch(self, keys: Sequence[Key]) -> "Mapping[Key, Vectors]":
        """Return the vectors that the team has, each a row of shape (dimensions,).

        Any number of keys; asks for some dozens at a time, 2 s at most each time.
        """
        found: dict[Key, Vectors] = {}
        size = self._space.collection.size if self._space else LOOKS
        for start in range(0, len(keys), size):
            batch = keys[start : start + size]
            got = await self._attempt(partial(_fetch, keys=batch))
            if got is None:
                break
            found |= got
            self._fetched += len(got)
        return found

    async def offer(
        self, keys: Sequence[Key], vectors: "Vectors", *, repositories: Sequence[str]
    ) -> int:
        """Give the team a vector, a row, for each key of these repositories.

        Returns how many are stored there now; 0 if this member only reads. What the
        team has is never overwritten.
        """
        if not self._place.writes:
            return 0
        stored = 0
        for start in range(0, len(keys), LOOKS):
            part = slice(start, start + LOOKS)
            batch, rows = keys[part], vectors[part]
            added = await self._attempt(
                partial(_offer, keys=batch, rows=rows, repositories=repositories)
            )
            if added is None:
                break
            stored += len(batch)
            self._pushed += added
        return stored

    async def nearest(
        self,
        question: "Vectors",
        *,
        repositories: Sequence[str],
        keys: Collection[Key],
        limit: int,
    ) -> Mapping[Key, float]:
        """Return which of these keys are nearest to a question, with their cosines.

        `question` is a single row. Only what the team knows of the repositories is
        searched, and none but `keys` if these are no more than `limit`. Empty after
        .4 s, if this member does not search, and until the models were compared; the
        first call begins that and waits as long.
        """
        if not (self._place.searches and keys and any(repositories)):
            return {}
        if not await self._is_entered():
            return {}  # to compare probes may take longer than a question can wait

        async def ask(vectors: TeamCollection, names: TeamNames) -> dict[Key, float]:
            few = names.points(keys) if len(keys) <= limit else {}
            scores = await vectors.nearest(
                question,
                [names.repository(name) for name in repositories if name],
                among=[*few],
                limit=limit,
                seconds=self._question_seconds,
            )
            known = few
            if scores and not few:
                known = await asyncio.to_thread(names.points, keys)
            return {known[p]: score for p, score in scores.items() if p in known}

        return await self._attempt(ask) or {}

    async def close(self) -> None:
        """Close the connections."""
        if self._entering is not None:
            self._entering.cancel()
            await asyncio.wait([self._entering])
        await self._store.close()

    async def _is_entered(self) -> bool:
        """Tell whether questions may be asked; that is found out in the background."""
        space = self._space
        if space is not None and space.names is None and not self._pause.seconds:
            if self._entering is None or self._entering.done():
                self._entering = asyncio.ensure_future(self._attempt(_enter_only))
            await asyncio.wait([self._entering], timeout=self._question_seconds)
        return space is not None and space.names is not None

    async def _attempt(
        self, work: Callable[[TeamCollection, TeamNames], Awaitable[_T]]
    ) -> _T | None:
        """Return what came of this work; None, and a pause, if the team cannot help."""
        space = self._space
        if space is None or self._pause.seconds:
            return None
        try:
            result = await work(space.collection, await self._enter(space))
        except ByokError as error:
            if isinstance(error, UpstreamRefused) and error.kind is _GONE:
                space.names = None  # removed, and perhaps created again by a writer
            self._pause.begin(error.sentence)
            return None
        self._pause.end()
        return result

    async def _enter(self, space: _Space) -> TeamNames:
        """Return the names, once a space is known to be of the same model and salt."""
        async with self._lock:
            if space.names is None:
                names = TeamNames(await self._salt.get())
                await self._compare(space, names)
                space.names = names
            return space.names

    async def _compare(self, space: _Space, names: TeamNames) -> None:
        """Compare the probe's vector and the salt, or store them as the first writer.

        Raises:
            ConfigError: another model or salt.
            NotReady: no writer has created the collection yet.
            ByokError: the server gave no usable answer.
        """
        collection = space.collection
        stored = await collection.read_probe() if await collection.exists() else None
        if stored is None and self._place.writes:
            await collection.create()
            await collection.write_probe(space.probe, names.check)
            stored = await collection.read_probe()  # another writer may have been first
        if stored is None:
            raise NotReady(
                f"No writer has filled the collection {collection.name} yet."
            )
        vector, check = stored
        if check != names.check:
            self._salt.forget()
            raise ConfigError(f"The collection {collection.name} has another salt.")
        if vector is None or cosine(vector, space.probe) < SAME:
            raise ConfigError(
                f"The collection {collection.name} holds vectors of another model "
                "behind the same name."
            )


async def _enter_only(collection: TeamCollection, names: TeamNames) -> bool:
    return True


async def _fetch(
    collection: TeamCollection, names: TeamNames, keys: Sequence[Key]
) -> "dict[Key, Vectors]":
    by_point = names.points(keys)
    vectors = await collection.vectors([*by_point])
    return {by_point[point]: vector for point, vector in vectors.items()}


async def _offer(
    collection: TeamCollection,
    names: TeamNames,
    keys: Sequence[Key],
    rows: "Vectors",
    repositories: Sequence[str],
) -> int:
    """Add what the team lacks of these; return how many vectors that were."""
    hashed = [names.repository(name) for name in repositories if name]
    row_of = {names.point(key): row for row, key in enumerate(keys)}
    known = await collection.repositories([*row_of])
    new = [point for point in row_of if point not in known]
    for start in range(0, len(new), collection.size):
        part = new[start : start + collection.size]
        await collection.insert(part, rows[[row_of[point] for point in part]], hashed)
    if hashed:
        await collection.add_repositories(known, hashed)
    return len(new)


# Asks a team's index what is near to a question, while no vector is here.
#
# After a change of model, or while filling is paused, colleagues may have vectors of
# the same texts. The vector of the question goes to their server, and keyed hashes of
# the texts in which its words were found; so this is off unless the user wants it.


# Ordinals and keys of the chunks of blobs.
_Chunks: TypeAlias = Mapping[int, Sequence[tuple[int, Key]]]
_NEAREST = 100
_MOST_ASKED = 1000  # texts of asked blobs: 40 KB of ids


class TeamSearch(Struct, eq=False):
    """Searches views with the vectors of a team that speaks of the asked space.

    `repositories_of` names the repositories of blobs by their ids.
    """

    team: TeamIndex
    store: VectorStore
    repositories_of: Callable[[Collection[int]], Awaitable[Sequence[str]]]

    async def near(
        self, space: Space, question: "Vectors", view: View, asked: Collection[int]
    ) -> NearChunks:
        """Return the nearest chunks of a view, and the best one of each asked blob.

        Only chunks that are listed here are found. A server that is silent costs .4 s,
        and is left alone then. `asked` are best first; of very many, the first ones
        are looked up.

        Raises:
            DiskFull, NotReady, IndexFailed: the listing cannot be read.
        """
        row = normalise(question)
        repositories = await self.repositories_of(view.ids)
        if row is None or len(row) != space.name.dimensions or not repositories:
            return NearChunks([], {})
        chunks, every = await asyncio.to_thread(self._read, space, view)

        async def ask(keys: Collection[Key], limit: int) -> Mapping[Key, float]:
            return await self.team.nearest(
                row, repositories=repositories, keys=keys, limit=limit
            )

        found = await ask(every, _NEAREST)
        scores = dict(found)
        some = _keys_of(chunks, asked)
        if found and len(every) > _NEAREST and some:
            scores |= await ask(some, len(some))
        nearest = await asyncio.to_thread(_hits, chunks, chunks, found)
        best: dict[int, ChunkScore] = {}
        for hit in _hits(chunks, asked, scores):
            best.setdefault(hit.blob_id, hit)
        return NearChunks(nearest[:_NEAREST], best)

    def _read(self, space: Space, view: View) -> tuple[_Chunks, Set[Key]]:
        """Return the listed chunks of a view, and all their keys; blocks."""
        chunks = self.store.keys_of_blobs(space, view.ids)
        return chunks, {key for keys in chunks.values() for _, key in keys}


def _keys_of(chunks: _Chunks, blob_ids: Iterable[int]) -> list[Key]:
    """Return the keys of the first blobs, each once."""
    keys = (key for blob_id in blob_ids for _, key in chunks.get(blob_id, ()))
    return [*islice(dict.fromkeys(keys), _MOST_ASKED)]


def _hits(
    chunks: _Chunks, blob_ids: Iterable[int], scores: Mapping[Key, float]
) -> list[ChunkScore]:
    """Return the chunks of blobs that have a score, nearest first."""
    hits = [
        ChunkScore(blob_id, ordinal, scores[key])
        for blob_id in blob_ids
        for ordinal, key in chunks.get(blob_id, ())
        if key in scores
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.blob_id, hit.ordinal))
