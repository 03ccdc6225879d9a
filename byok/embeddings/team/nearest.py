"""Asks a team's index what is near to a question, while no vector is here.

After a change of model, or while filling is paused, colleagues may have vectors of the
same texts. The vector of the question goes to their server, and keyed hashes of the
texts in which its words were found; so this is off unless the user wants it.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from byok.embeddings.store.quantise import normalise
from byok.embeddings.store.spaces import Space
from byok.embeddings.team.listed_keys import ListedKeys
from byok.embeddings.types import Key, TeamVectors
from byok.index.store.chunk_index import ChunkScore, View
from byok.retrieval.model_aids import NearChunks

if TYPE_CHECKING:
    from byok.embeddings.types import Vectors

# Ordinals and keys of the chunks of blobs.
_Chunks: TypeAlias = Mapping[int, Sequence[tuple[int, Key]]]
_NEAREST = 100
_MOST_ASKED = 1000  # texts of asked blobs: 40 KB of ids


class TeamSearch:
    """Searches views with the vectors of a team that speaks of the asked space."""

    def __init__(
        self,
        team: TeamVectors,
        listed: ListedKeys,
        repositories_of: Callable[[Collection[int]], Sequence[str]],
    ) -> None:
        """`repositories_of` names the repositories of blobs by their ids."""
        self._team = team
        self._listed = listed
        self._repositories_of = repositories_of

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
        repositories = self._repositories_of(view.ids)
        if row is None or len(row) != space.name.dimensions or not repositories:
            return NearChunks([], {})
        chunks, every = await asyncio.to_thread(self._read, space, view)

        async def ask(keys: Collection[Key], limit: int) -> Mapping[Key, float]:
            return await self._team.nearest(
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
        chunks = self._listed.of_blobs(space, view.ids)
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
