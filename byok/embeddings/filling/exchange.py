"""What filling exchanges with a team: its vectors first, and ours for others."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from byok.embeddings.numeric import np
from byok.embeddings.store.spaces import Space
from byok.embeddings.store.store import VectorStore
from byok.embeddings.types import Key, TeamVectors

if TYPE_CHECKING:
    from byok.embeddings.types import Vectors

# Texts without a vector, and a blob that has them, by key.
Wanted: TypeAlias = dict[Key, tuple[str, int]]


class TeamExchange:
    """Takes vectors that a team has, and offers it what the model made."""

    def __init__(
        self,
        store: VectorStore,
        team: TeamVectors,
        repositories_of: Callable[[int], Sequence[str]],
    ) -> None:
        """`repositories_of` names the repositories of a blob by its id."""
        self._store = store
        self._team = team
        self._repositories_of = repositories_of

    def use(self, space: Space) -> None:
        """Speak of this space from now on."""
        self._team.use(space.name, space.probe.ravel())

    async def fetch(self, space: Space, wanted: Wanted) -> Wanted:
        """Store what the team has; return the rest.

        Raises:
            DiskFull, NotReady, IndexFailed: of the store.
        """
        found = dict(await self._team.fetch(list(wanted)))
        if found:
            await asyncio.to_thread(self._put, space, found)
        return {key: some for key, some in wanted.items() if key not in found}

    def _put(self, space: Space, found: "dict[Key, Vectors]") -> None:
        rows = np.stack([row.ravel() for row in found.values()])
        self._store.put(space, list(found), rows)

    async def offer(self, wanted: Wanted, vectors: "Vectors") -> None:
        """Offer vectors, a row for each text: those of each repository together."""
        if not self._team.status.writes:
            return
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, (_, blob_id) in enumerate(wanted.values()):
            rows.setdefault(tuple(self._repositories_of(blob_id)), []).append(row)
        keys = list(wanted)
        for names, some in rows.items():
            if names:
                of_some = [keys[row] for row in some]
                await self._team.offer(of_some, vectors[some], repositories=names)
