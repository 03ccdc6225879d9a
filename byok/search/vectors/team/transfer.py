"""Transfer of vectors between this machine and its team: while filling, and on request.

Filling uses the team by itself. Push and pull are for users who want everything now,
and for members who start to write when their store is already full. A text that is in
no repository with an address is private, and not given.
"""

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

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

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

_PAGE = 1024
_ReadPage: TypeAlias = Callable[[Space, int, int], list[ListedKey]]


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


async def _fetch(
    team: TeamIndex, store: VectorStore, space: Space, keys: Sequence[Key]
) -> Set[Key]:
    """Store the vectors of these keys that a team has; return the keys.

    Raises:
        DiskFull, NotReady, IndexFailed: of the store.
    """
    vectors = await team.fetch(keys)
    if vectors:
        rows = np.stack([*vectors.values()])
        await asyncio.to_thread(store.put, space, [*vectors], rows)
    return vectors.keys()


class TeamExchange(Struct, eq=False):
    """Fetches the vectors of a team, and offers it those that the model made.

    `repositories_of` returns the names of the repositories of blobs.
    """

    store: VectorStore
    team: TeamIndex
    repositories_of: Callable[[Collection[int]], Awaitable[Sequence[str]]]

    def use(self, space: Space) -> None:
        """Use the team's collection of this space from now on."""
        self.team.use(space.name, space.probe.ravel())

    async def fetch(self, space: Space, keys: Sequence[Key]) -> Set[Key]:
        """Store the vectors of these keys that the team has; return the keys.

        Raises:
            DiskFull, NotReady, IndexFailed: of the store.
        """
        return await _fetch(self.team, self.store, space, keys)

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


class Transfer(Struct, eq=False):
    """Copies vectors of one space between a store and a team.

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
        roots = await asyncio.to_thread(self.store.roots)
        names = await asyncio.to_thread(
            lambda: {number: repository_name_of(root) for number, root in roots.items()}
        )
        stored, after = 0, 0
        while page := await self._next_page(self.store.keys_with_vector, after):
            after = page[-1].number
            for keys, repositories in _by_repositories(page, names):
                if repositories:
                    stored += await self._offer(keys, repositories)
        return stored

    async def _offer(self, keys: list[Key], repositories: list[str]) -> int:
        vectors = await asyncio.to_thread(self.store.vectors_of, self.space, keys)
        if not vectors:
            return 0
        rows = np.stack([*vectors.values()])
        stored = await self.team.offer([*vectors], rows, repositories=repositories)
        if stored < len(vectors):
            self._fail("The team did not take all vectors")
        return stored

    async def pull(self) -> int:
        """Fetch the missing vectors of listed chunks; return how many were received.

        Raises:
            NotReady: not all could be requested, or vectors were switched off
                meanwhile; the message says why.
        """
        received, after = 0, 0
        while page := await self._next_page(self.store.keys_without_vector, after):
            after = page[-1].number
            keys = [listed.key for listed in page]
            received += len(await _fetch(self.team, self.store, self.space, keys))
            if self.team.status.note:
                self._fail("The team could not be asked for all vectors")
        return received

    async def _next_page(self, read: _ReadPage, after: int) -> list[ListedKey]:
        if not self.may_go_on():
            raise NotReady("Vectors were switched off or changed meanwhile.")
        return await asyncio.to_thread(read, self.space, after, _PAGE)

    def _fail(self, text: str) -> None:
        raise NotReady(f"{text}: {self.team.status.note or 'its server was paused.'}")


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
