"""Exchange of vectors between this machine and its team: while filling, and on request.

Filling uses the team by itself. Push and pull are for users who want everything now,
and for members who start to write when their store is already full. A text that is in
no repository with an address is private, and not given.
"""

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from byok.core.errors import ConfigError, NotReady
from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.index.workspace.git_history import repository_name_of
from byok.search.retrieval.model_aids import NearChunks
from byok.search.vectors.numeric import normalise, np
from byok.search.vectors.store import listings
from byok.search.vectors.store.database import Space
from byok.search.vectors.store.listings import ListedKey
from byok.search.vectors.store.open_space import vectors_of
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.team_index import TeamIndex
from byok.search.vectors.types import Key

if TYPE_CHECKING:
    import sqlite3

    from byok.search.vectors.types import Vectors

_PAGE = 1024
_NEAREST = 100
_MAX_REQUESTED_KEYS = 1000  # of requested blobs: 40 KB of ids
_ReadPage: TypeAlias = (
    "Callable[[sqlite3.Connection, Space, int, int], list[ListedKey]]"
)
# Ordinals and keys of the chunks of blobs.
_Chunks: TypeAlias = Mapping[int, Sequence[tuple[int, Key]]]


class Repositories(Struct, eq=False):
    """The repositories of the workspaces; git runs once for each of them."""

    engine: ContextEngine
    name_of: Callable[[Path], str] = repository_name_of
    _names: dict[int, str] = {}  # by workspace

    async def of_blobs(self, blob_ids: Collection[int]) -> list[str]:
        """Return the distinct names of the repositories that contain some blobs."""
        names: dict[str, None] = {}
        for space in self.engine.workspaces:
            if space.ids().isdisjoint(blob_ids):
                continue
            if space.id not in self._names:
                name = await asyncio.to_thread(self.name_of, space.root)
                self._names[space.id] = name
            names[self._names[space.id]] = None
        return [name for name in names if name]


class TeamExchange(Struct, eq=False):
    """Copies vectors between a store and a team, and searches those of the team.

    `repositories_of` returns the names of the repositories of blobs. `may_go_on` tells,
    before each page of a push or pull, whether vectors are still in use.
    """

    store: VectorStore
    team: TeamIndex
    repositories_of: Callable[[Collection[int]], Awaitable[Sequence[str]]]
    may_go_on: Callable[[], bool] = lambda: True

    async def fetch(self, space: Space, keys: Sequence[Key]) -> Set[Key]:
        """Store the vectors of these keys that the team has; return the keys.

        Raises:
            DiskFull, NotReady, IndexFailed: of the store.
        """
        vectors = await self.team.fetch(keys)
        if vectors:
            rows = np.stack([*vectors.values()])
            await asyncio.to_thread(self.store.put, space, [*vectors], rows)
        return vectors.keys()

    async def offer(self, blobs: Mapping[Key, int], vectors: "Vectors") -> None:
        """Offer a vector (a row) for each key; `blobs` has a blob with its text.

        Vectors of the same repositories are offered together.
        """
        if not self.team.status.writes:
            return
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, blob_id in enumerate(blobs.values()):
            names = await self.repositories_of([blob_id])
            rows.setdefault(tuple(names), []).append(row)
        keys = list(blobs)
        for names, part in rows.items():
            if names:
                keys_of_part = [keys[row] for row in part]
                await self.team.offer(keys_of_part, vectors[part], repositories=names)

    async def push(self, space: Space) -> int:
        """Give the team the store's vectors; return how many of them it has now.

        Raises:
            ConfigError: this member only reads.
            NotReady: the team did not take them all, or vectors were switched off
                meanwhile; the message says why.
        """
        if not self.team.status.writes:
            raise ConfigError(
                "This member of the team only reads.",
                hint="Set write = true under [embeddings.team].",
            )
        roots = await asyncio.to_thread(self.store.read, listings.workspace_roots)
        names = await asyncio.to_thread(
            lambda: {number: repository_name_of(root) for number, root in roots.items()}
        )
        stored, after = 0, 0
        while page := await self._next_page(listings.keys_with_vector, space, after):
            after = page[-1].number
            for keys, repositories in _by_repositories(page, names):
                if repositories:
                    stored += await self._push_part(space, keys, repositories)
        return stored

    async def _push_part(
        self, space: Space, keys: list[Key], repositories: list[str]
    ) -> int:
        vectors = await asyncio.to_thread(self.store.read, vectors_of, space, keys)
        if not vectors:
            return 0
        rows = np.stack([*vectors.values()])
        stored = await self.team.offer([*vectors], rows, repositories=repositories)
        if stored < len(vectors):
            self._fail("The team did not take all vectors")
        return stored

    async def pull(self, space: Space) -> int:
        """Fetch the missing vectors of listed chunks; return how many were received.

        Raises:
            NotReady: not all could be requested, or vectors were switched off
                meanwhile; the message says why.
        """
        received, after = 0, 0
        while page := await self._next_page(listings.keys_without_vector, space, after):
            after = page[-1].number
            received += len(await self.fetch(space, [listed.key for listed in page]))
            if self.team.status.note:
                self._fail("The team could not be asked for all vectors")
        return received

    async def _next_page(
        self, read: _ReadPage, space: Space, after: int
    ) -> list[ListedKey]:
        if not self.may_go_on():
            raise NotReady("Vectors were switched off or changed meanwhile.")
        return await asyncio.to_thread(self.store.read, read, space, after, _PAGE)

    def _fail(self, text: str) -> None:
        raise NotReady(f"{text}: {self.team.status.note or 'its server was paused.'}")

    async def near(
        self, space: Space, question: "Vectors", view: View, requested: Collection[int]
    ) -> NearChunks:
        """Return the nearest chunks of a view, and the best one of each requested blob.

        This is for the time while this machine has no vectors. After a change of model,
        or while filling is paused, colleagues may have those of the same texts. Their
        server gets the vector of the question, and keyed hashes of the texts in which
        its words were found; so it is off unless the user wants it.

        Only chunks that are listed here are found. A silent server costs 0.4 seconds,
        then a pause begins. `requested` has the best blobs first; only the first of
        very many are looked up.

        Raises:
            DiskFull, NotReady, IndexFailed: the listing cannot be read.
        """
        row = normalise(question)
        repositories = await self.repositories_of(view.ids)
        if row is None or len(row) != space.name.dimensions or not repositories:
            return NearChunks([], {})

        def list_chunks() -> tuple[_Chunks, Set[Key]]:
            recipe = space.name.recipe
            chunks = self.store.read(listings.keys_of, recipe, view.ids)
            return chunks, {key for keys in chunks.values() for _, key in keys}

        async def ask(keys: Collection[Key], limit: int) -> Mapping[Key, float]:
            return await self.team.nearest(
                row, repositories=repositories, keys=keys, limit=limit
            )

        chunks, all_keys = await asyncio.to_thread(list_chunks)
        nearest_scores = await ask(all_keys, _NEAREST)
        scores = dict(nearest_scores)
        keys = (key for blob_id in requested for _, key in chunks.get(blob_id, ()))
        requested_keys = [*islice(dict.fromkeys(keys), _MAX_REQUESTED_KEYS)]
        if nearest_scores and len(all_keys) > _NEAREST and requested_keys:
            scores |= await ask(requested_keys, len(requested_keys))
        nearest = await asyncio.to_thread(_hits, chunks, chunks, nearest_scores)
        best: dict[int, ChunkScore] = {}
        for hit in _hits(chunks, requested, scores):
            best.setdefault(hit.blob_id, hit)
        return NearChunks(nearest[:_NEAREST], best)


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


def _by_repositories(
    page: Sequence[ListedKey], names: dict[int, str]
) -> Iterator[tuple[list[Key], list[str]]]:
    """Yield groups of keys whose texts are in the same repositories."""
    keyed = sorted(
        (sorted({names.get(n, "") for n in listed.workspaces} - {""}), listed.key)
        for listed in page
    )
    for repositories, group in groupby(keyed, key=itemgetter(0)):
        yield [key for _, key in group], repositories
