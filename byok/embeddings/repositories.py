"""Names the repositories that a blob belongs to, for a team's index."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from byok.embeddings.team.repository import repository_names
from byok.index.engine import ContextEngine

_SECONDS = 30.0


class Repositories:
    """The repositories of the workspaces; git is asked once for each of them.

    `names_of` returns the names of the repositories that folders are in; it blocks.
    """

    def __init__(
        self,
        engine: ContextEngine,
        names_of: Callable[[Iterable[Path]], Sequence[str]] = repository_names,
    ) -> None:
        self._engine = engine
        self._names_of = names_of
        self._names: dict[int, Sequence[str]] = {}  # by workspace

    async def follow(self) -> None:
        """Learn the names of all workspaces, and of new ones, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_SECONDS)

    async def look(self) -> None:
        """Learn the names of workspaces that are new."""
        for space in self._engine.workspaces:
            if space.id not in self._names:
                names = await asyncio.to_thread(self._names_of, [space.root])
                self._names[space.id] = names

    def of_blob(self, blob_id: int) -> Sequence[str]:
        """Return the names for a blob, each once; none if it is in no repository."""
        return self.of_blobs([blob_id])

    def of_blobs(self, blob_ids: Collection[int]) -> Sequence[str]:
        """Return the names for some blobs, each once."""
        names = (
            name
            for space in self._engine.workspaces
            if not space.ids().isdisjoint(blob_ids)
            for name in self._names.get(space.id, ())
        )
        return [*dict.fromkeys(names)]
