"""Push and pull: all that this machine has to a team, all that it lacks from a team.

Filling asks the team by itself; this is for users who want it now, and for members who
begin to write when their store is full already. As with filling, a text that is in no
repository with an address is nobody else's and is not given.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from byok.core.errors import ConfigError, NotReady
from byok.search.index.engine import ContextEngine
from byok.search.index.workspace.git_history import repository_name_of
from byok.search.vectors.numeric import np
from byok.search.vectors.store.database import Space
from byok.search.vectors.store.listings import ListedKey
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.team_index import TeamIndex
from byok.search.vectors.types import Key

# What members of a team call the same repository, and a blob's repositories.


def repository_names(roots: Iterable[Path]) -> list[str]:
    """Return the names of the repositories that these folders are in, each once."""
    names = map(repository_name_of, roots)
    return [*dict.fromkeys(name for name in names if name)]


# Names the repositories that a blob belongs to, for a team's index.


_LOOK_SECONDS = 30.0


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
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Learn the names of workspaces that are new."""
        for space in self._engine.workspaces:
            if space.id not in self._names:
                names = await asyncio.to_thread(self._names_of, [space.root])
                self._names[space.id] = names

    def of_blobs(self, blob_ids: Collection[int]) -> Sequence[str]:
        """Return the names for some blobs, each once; none outside of repositories."""
        names = (
            name
            for space in self._engine.workspaces
            if not space.ids().isdisjoint(blob_ids)
            for name in self._names.get(space.id, ())
        )
        return [*dict.fromkeys(names)]


# Pushing and pulling.


_PAGE = 1024
_ReadPage: TypeAlias = Callable[[Space, int, int], list[ListedKey]]


class Transfer(Struct, eq=False):
    """Moves vectors of one space between a store and a team, which uses that space.

    `may_go_on` tells, before each page, whether vectors are still in use.
    """

    team: TeamIndex
    store: VectorStore
    space: Space
    may_go_on: Callable[[], bool]

    async def push(self) -> int:
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
        roots = await asyncio.to_thread(self.store.listed_keys.roots)
        names = await asyncio.to_thread(
            lambda: {number: repository_name_of(root) for number, root in roots.items()}
        )
        stored, after = 0, 0
        while page := await self._next(self.store.listed_keys.with_vector, after):
            after = page[-1].number
            for keys, repositories in _by_repositories(page, names):
                if repositories:
                    stored += await self._offer(keys, repositories)
        return stored

    async def _offer(self, keys: list[Key], repositories: list[str]) -> int:
        found = await asyncio.to_thread(self.store.vectors_of, self.space, keys)
        if not found:
            return 0
        rows = np.stack([*found.values()])
        stored = await self.team.offer([*found], rows, repositories=repositories)
        if stored < len(found):
            self._raise("The team did not take all vectors")
        return stored

    async def pull(self) -> int:
        """Fetch what the store lacks of listed chunks; return how many vectors came.

        Raises:
            NotReady: the team could not be asked for all, or vectors were switched off
                meanwhile; the message says why.
        """
        came, after = 0, 0
        while page := await self._next(self.store.listed_keys.without_vector, after):
            after = page[-1].number
            found = await self.team.fetch([listed.key for listed in page])
            if found:
                keys, rows = [*found], np.stack([*found.values()])
                await asyncio.to_thread(self.store.put, self.space, keys, rows)
                came += len(keys)
            if self.team.status.note:
                self._raise("The team could not be asked for all vectors")
        return came

    async def _next(self, read: _ReadPage, after: int) -> list[ListedKey]:
        page = await asyncio.to_thread(read, self.space, after, _PAGE)
        if not self.may_go_on():
            raise NotReady("Vectors were switched off or changed meanwhile.")
        return page

    def _raise(self, what: str) -> None:
        raise NotReady(f"{what}: {self.team.status.note or 'its server was paused.'}")


def _by_repositories(
    page: Sequence[ListedKey], names: dict[int, str]
) -> Iterator[tuple[list[Key], list[str]]]:
    """Group keys whose texts are in the same repositories."""
    named = sorted(
        (sorted({names.get(n, "") for n in listed.workspaces} - {""}), listed.key)
        for listed in page
    )
    for repositories, group in groupby(named, key=itemgetter(0)):
        yield [key for _, key in group], repositories
