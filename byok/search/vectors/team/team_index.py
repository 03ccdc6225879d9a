"""A team's index as a member uses it: to fetch, to offer, to search the nearest.

A collection is used only after its probe was verified: the probe has the vector of a
text that every member embeds too, so that a model replaced behind its name is noticed,
and a check of the salt. Only writers create anything.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from byok.core.errors import (
    ByokError,
    ConfigError,
    NotReady,
    RefusalKind,
    UpstreamRefused,
)
from byok.search.outside.server import Pause, SecretSource
from byok.search.vectors.numeric import cosine
from byok.search.vectors.store.database import SAME_COSINE
from byok.search.vectors.team.collection import (
    MAX_LOOKUPS,
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
QUESTION_SECONDS = 0.4  # as long as a question waits for its vector


class TeamPlace(Struct, frozen=True):
    """The address of a team's index, the team, and the rights of this member.

    A member that `writes` gives vectors; one that `searches` sends the vectors of
    questions.
    """

    url: str
    team: str
    writes: bool = False
    searches: bool = False


class _Space(Struct):
    collection: TeamCollection
    probe: "Vectors"
    names: TeamNames | None = None  # set when the collection is verified


class TeamIndex(Struct, eq=False):
    """Vectors that the members of a team share.

    No method raises if its server fails, refuses or is slow: the result is then empty,
    `status` has the reason, and no request is sent for a while. So `fetch` is called
    before texts are embedded, and the texts without result are embedded; nothing else
    depends on the server. Received vectors are checked, and returned as rows of
    `dimensions` 32-bit floats of length 1. Repositories are named as `repository_name`
    does; "" is left out.
    """

    place: TeamPlace
    store: TeamStore
    salt: SecretSource
    pause: Pause = field(default_factory=lambda: Pause("the team's index"))
    question_seconds: float = QUESTION_SECONDS
    _space: _Space | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _verification: asyncio.Task[object] | None = None
    _fetched: int = 0
    _pushed: int = 0

    @property
    def status(self) -> TeamStatus:
        """The current state, for users."""
        return TeamStatus(
            url=self.place.url,
            team=self.place.team,
            collection=self._space.collection.name if self._space else "",
            note=self.pause.note,
            next_try=self.pause.seconds,
            fetched=self._fetched,
            pushed=self._pushed,
            writes=self.place.writes,
            searches=self.place.searches,
        )

    def use(self, space: SpaceName, probe: "Vectors") -> None:
        """Use the collection of this space; `probe` is the vector of its probe text.

        Sends no request. Call this first, and again whenever the model changed.
        """
        name = collection_name(self.place.team, space)
        current = self._space
        if (
            current is None
            or current.collection.name != name
            or cosine(current.probe, probe) < SAME_COSINE
        ):
            collection = self.store.collection(name, space.dimensions)
            self._space = _Space(collection, probe)

    async def fetch(self, keys: Sequence[Key]) -> "Mapping[Key, Vectors]":
        """Return the vectors that the team has, each a row of shape (dimensions,).

        There may be any number of keys; each request has some dozens of them, and takes
        2 seconds at most.
        """
        vectors_by_key: dict[Key, Vectors] = {}
        size = self._space.collection.size if self._space else MAX_LOOKUPS
        for start in range(0, len(keys), size):
            batch = keys[start : start + size]
            batch_vectors = await self._try(partial(_fetch, keys=batch))
            if batch_vectors is None:
                break
            vectors_by_key |= batch_vectors
            self._fetched += len(batch_vectors)
        return vectors_by_key

    async def offer(
        self, keys: Sequence[Key], vectors: "Vectors", *, repositories: Sequence[str]
    ) -> int:
        """Give the team a vector (a row) for each key of these repositories.

        Return how many of them the team has now; 0 if this member only reads. Existing
        vectors are never overwritten.
        """
        if not self.place.writes:
            return 0
        stored = 0
        for start in range(0, len(keys), MAX_LOOKUPS):
            part = slice(start, start + MAX_LOOKUPS)
            batch, rows = keys[part], vectors[part]
            added = await self._try(
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
        """Return the keys nearest to a question, with their cosines.

        `question` is a single row. Only texts of the repositories are searched, and
        only `keys` if they are no more than `limit`. The result is empty after 0.4
        seconds, if this member does not search, and until the collection is verified;
        the first call starts that and waits as long.
        """
        if not (self.place.searches and keys and any(repositories)):
            return {}
        if not await self._is_verified():
            return {}  # a verification may take longer than a question can wait

        async def search(vectors: TeamCollection, names: TeamNames) -> dict[Key, float]:
            few = names.points(keys) if len(keys) <= limit else {}
            scores = await vectors.nearest(
                question,
                [names.repository(name) for name in repositories if name],
                among=[*few],
                limit=limit,
                seconds=self.question_seconds,
            )
            by_point = few
            if scores and not few:
                by_point = await asyncio.to_thread(names.points, keys)
            return {by_point[p]: score for p, score in scores.items() if p in by_point}

        return await self._try(search) or {}

    async def close(self) -> None:
        """Close the connections."""
        if self._verification is not None:
            self._verification.cancel()
            await asyncio.wait([self._verification])
        await self.store.close()

    async def _is_verified(self) -> bool:
        """Tell whether the collection is verified; otherwise start that, and wait."""
        space = self._space
        if space is not None and space.names is None and not self.pause.seconds:
            if self._verification is None or self._verification.done():
                self._verification = asyncio.ensure_future(self._try(_verify_only))
            await asyncio.wait([self._verification], timeout=self.question_seconds)
        return space is not None and space.names is not None

    async def _try(
        self, work: Callable[[TeamCollection, TeamNames], Awaitable[_T]]
    ) -> _T | None:
        """Return the result of some work; None if it fails, which starts a pause."""
        space = self._space
        if space is None or self.pause.seconds:
            return None
        try:
            result = await work(space.collection, await self._verified_names(space))
        except ByokError as error:
            if isinstance(error, UpstreamRefused) and error.kind is _GONE:
                space.names = None  # a writer may create the collection again
            self.pause.begin(error.sentence)
            return None
        self.pause.end()
        return result

    async def _verified_names(self, space: _Space) -> TeamNames:
        """Return the names, after model and salt of the collection were verified."""
        async with self._lock:
            if space.names is None:
                names = TeamNames(await self.salt.get())
                await self._verify(space, names)
                space.names = names
            return space.names

    async def _verify(self, space: _Space, names: TeamNames) -> None:
        """Compare the probe's vector and the salt, or store them as the first writer.

        Raises:
            ConfigError: another model or salt.
            NotReady: no writer has created the collection yet.
            ByokError: the server gave no usable answer.
        """
        collection = space.collection
        stored = await collection.read_probe() if await collection.exists() else None
        if stored is None and self.place.writes:
            await collection.create()
            await collection.write_probe(space.probe, names.check)
            stored = await collection.read_probe()  # another writer may have been first
        if stored is None:
            raise NotReady(
                f"No writer has filled the collection {collection.name} yet."
            )
        vector, check = stored
        if check != names.check:
            self.salt.forget()
            raise ConfigError(f"The collection {collection.name} has another salt.")
        if vector is None or cosine(vector, space.probe) < SAME_COSINE:
            raise ConfigError(
                f"The collection {collection.name} holds vectors of another model "
                "behind the same name."
            )


async def _verify_only(collection: TeamCollection, names: TeamNames) -> bool:
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
    """Add the vectors that the team lacks; return their number."""
    hashed = [names.repository(name) for name in repositories if name]
    row_of = {names.point(key): row for row, key in enumerate(keys)}
    existing = await collection.repositories([*row_of])
    new = [point for point in row_of if point not in existing]
    for start in range(0, len(new), collection.size):
        part = new[start : start + collection.size]
        await collection.insert(part, rows[[row_of[point] for point in part]], hashed)
    if hashed:
        await collection.add_repositories(existing, hashed)
    return len(new)
