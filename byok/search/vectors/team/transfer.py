"""Push and pull: all that this machine has to a team, all that it lacks from a team.

Filling asks the team by itself; this is for users who want it now, and for members who
begin to write when their store is full already. As with filling, a text that is in no
repository with an address is nobody else's and is not given.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

from byok.core.errors import ConfigError, NotReady
from byok.search.vectors.numeric import np
from byok.search.vectors.store.database import translate_errors
from byok.search.vectors.store.listings import keys_of
from byok.search.vectors.store.spaces import Space
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.repository import repository_name_of
from byok.search.vectors.types import Key, TeamVectors

# Which keys this machine has a vector of, which it lacks, and where texts come from.
#
# Reads the database of vectors by a connection of its own, a page at a time, so that
# neither filling nor questions wait for it.


class ListedKey(NamedTuple):
    """A key, the number that orders pages, and the workspaces that have its text."""

    number: int
    key: Key
    workspaces: tuple[int, ...] = ()


class ListedKeys:
    """The keys of one vector store. All methods block."""

    def __init__(self, vectors: Path, index: Path) -> None:
        """Take the files of the vector store and of the code index, both open."""
        self._vectors = vectors
        self._index = index

    def roots(self) -> dict[int, Path]:
        """Return the folders of the workspaces."""
        with self._open() as db:
            rows = db.execute("SELECT id, root FROM data.workspace").fetchall()
        return {number: Path(root) for number, root in rows}

    def with_vector(self, space: Space, after: int, limit: int) -> list[ListedKey]:
        """Return keys that have a vector in a space, those after a number."""
        workspaces = (
            "SELECT group_concat(DISTINCT f.workspace_id) FROM chunk c "
            "JOIN data.file f ON f.blob_id = c.blob_id "
            "WHERE c.key_id = k.id AND c.recipe = ?"
        )
        with self._open() as db:
            rows = db.execute(
                f"SELECT k.id, k.name, ({workspaces}) FROM vector v "  # noqa: S608
                "INDEXED BY vector_key JOIN key k ON k.id = v.key_id "
                "WHERE v.space_id = ? AND v.key_id > ? ORDER BY v.key_id LIMIT ?",
                (space.name.recipe, space.id, after, limit),
            ).fetchall()
        return [ListedKey(n, key, _numbers(found)) for n, key, found in rows]

    def without_vector(self, space: Space, after: int, limit: int) -> list[ListedKey]:
        """Return keys of chunks that have none in a space, refused ones included."""
        with self._open() as db:
            rows = db.execute(
                "SELECT k.id, k.name FROM key k WHERE k.id > ? AND EXISTS(SELECT 1 "
                "FROM chunk c WHERE c.key_id = k.id AND c.recipe = ?) "
                "AND NOT EXISTS(SELECT 1 FROM vector v WHERE v.space_id = ? "
                "AND v.key_id = k.id) ORDER BY k.id LIMIT ?",
                (after, space.name.recipe, space.id, limit),
            ).fetchall()
        return [ListedKey(*row) for row in rows]

    def of_blobs(
        self, space: Space, blob_ids: Iterable[int]
    ) -> dict[int, list[tuple[int, Key]]]:
        """Return the ordinals and keys of the chunks of those blobs that are listed."""
        with self._open() as db:
            return keys_of(db, space.name.recipe, blob_ids)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with translate_errors(self._vectors):
            uri = f"{self._vectors.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as db:
                index = f"{self._index.absolute().as_uri()}?mode=ro"
                db.execute("ATTACH ? AS data", (index,))
                yield db


def _numbers(joined: str | None) -> tuple[int, ...]:
    return tuple(sorted(map(int, joined.split(",")))) if joined else ()


_PAGE = 1024
_ReadPage: TypeAlias = Callable[[Space, int, int], list[ListedKey]]


class Transfer:
    """Moves vectors of one space between a store and a team, which uses that space."""

    def __init__(
        self,
        team: TeamVectors,
        store: VectorStore,
        space: Space,
        listed: ListedKeys,
        *,
        may_go_on: Callable[[], bool],
    ) -> None:
        """`may_go_on` tells, before each page, whether vectors are still in use."""
        self._team = team
        self._store = store
        self._space = space
        self._listed = listed
        self._may_go_on = may_go_on

    async def push(self) -> int:
        """Give the team the store's vectors; return how many of them it has now.

        Raises:
            ConfigError: this member only reads.
            NotReady: the team did not take them all, or vectors were switched off
                meanwhile; the message says why.
        """
        if not self._team.status.writes:
            raise ConfigError(
                "This member of the team only reads.",
                hint="Set write = true under [embeddings.team].",
            )
        roots = await asyncio.to_thread(self._listed.roots)
        names = await asyncio.to_thread(
            lambda: {number: repository_name_of(root) for number, root in roots.items()}
        )
        stored, after = 0, 0
        while page := await self._next(self._listed.with_vector, after):
            after = page[-1].number
            for keys, repositories in _by_repositories(page, names):
                if repositories:
                    stored += await self._offer(keys, repositories)
        return stored

    async def _offer(self, keys: list[Key], repositories: list[str]) -> int:
        found = await asyncio.to_thread(self._store.vectors_of, self._space, keys)
        if not found:
            return 0
        rows = np.stack([*found.values()])
        stored = await self._team.offer([*found], rows, repositories=repositories)
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
        while page := await self._next(self._listed.without_vector, after):
            after = page[-1].number
            found = await self._team.fetch([listed.key for listed in page])
            if found:
                keys, rows = [*found], np.stack([*found.values()])
                await asyncio.to_thread(self._store.put, self._space, keys, rows)
                came += len(keys)
            if self._team.status.note:
                self._raise("The team could not be asked for all vectors")
        return came

    async def _next(self, read: _ReadPage, after: int) -> list[ListedKey]:
        page = await asyncio.to_thread(read, self._space, after, _PAGE)
        if not self._may_go_on():
            raise NotReady("Vectors were switched off or changed meanwhile.")
        return page

    def _raise(self, what: str) -> None:
        raise NotReady(f"{what}: {self._team.status.note or 'its server was paused.'}")


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
