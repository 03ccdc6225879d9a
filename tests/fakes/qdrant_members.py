"""Members of a team that share vectors on a server: what each embeds and has stored."""

import hashlib
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np

from byok.search.outside.server import Pause
from byok.search.vectors.recipe import is_embedded
from byok.search.vectors.store.open_space import vectors_of
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.collection import TeamStore
from byok.search.vectors.team.postgres import PostgresStore
from byok.search.vectors.team.qdrant import QdrantStore
from byok.search.vectors.team.team_index import TeamIndex, TeamPlace
from byok.search.vectors.team.transfer import TeamExchange
from byok.search.vectors.types import SpaceName
from byok.upstream.transport import Route, Transports
from tests.fakes.asker import Key
from tests.fakes.clock import Clock
from tests.fakes.patience import PATIENCE
from tests.fakes.vectors import SPACE as TEXT_SPACE
from tests.fakes.vectors import Rows, keys, probe, vectors

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

SALT = "a salt that the whole team has"
SPACE = SpaceName("fake-embed", 8, "1")


def key(text: str) -> bytes:
    return hashlib.sha256(f"1\0{text}".encode()).digest()


def embed(*texts: str, model: str = "", dimensions: int = 8) -> "Vectors":
    """Return a vector for each text, the same for everybody."""
    rows = []
    for text in texts:
        seed = hashlib.sha256(f"{model}{text}".encode()).digest()
        random = np.random.default_rng(int.from_bytes(seed[:8], "big"))
        rows.append(random.standard_normal(dimensions))
    made = np.array(rows, dtype=np.float32).reshape(len(texts), dimensions)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


class Team:
    """Makes members; close it when done."""

    def __init__(self, url: str, api_key: str = "") -> None:
        self.url = url
        self.api_key = api_key
        self.name = "platform"
        self.clock = Clock()
        self._transports = Transports()
        self._members: list[TeamIndex] = []

    def member(
        self,
        *,
        writes: bool = False,
        searches: bool = True,
        api_key: "Key | str | None" = None,
        salt: "Key | str" = SALT,
        space: SpaceName = SPACE,
        model: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> TeamIndex:
        """Return a member whose model has made its probe."""
        given = self.api_key if api_key is None else api_key
        source = given if isinstance(given, Key) else Key(given)
        server: TeamStore
        if self.url.startswith("postgresql:"):
            server = PostgresStore(
                self.url, source, None, writes=writes, seconds=PATIENCE
            )
        else:
            usual = partial(self._transports.by, Route())
            server = QdrantStore(
                self.url, lambda: transport or usual(), source, seconds=PATIENCE
            )
        pause = Pause("it", clock=self.clock, draw=lambda: 1.0)
        place = TeamPlace(self.url, self.name, writes, searches)
        salts = salt if isinstance(salt, Key) else Key(salt)
        made = TeamIndex(place, server, salts, pause=pause, question_seconds=PATIENCE)
        made.use(space, embed("probe", model=model, dimensions=space.dimensions))
        self._members.append(made)
        return made

    async def close(self) -> None:
        for member in self._members:
            await member.close()
        await self._transports.close()


class Machine:
    """A store of vectors beside an index with one blob for each text."""

    def __init__(self, home: Path, *texts: str) -> None:
        home.mkdir()
        rows = Rows(home / "data.db")
        ids = rows.add(*(f"{text}.py" for text in texts))
        self.rows, self.ids = rows, ids
        self.store = VectorStore(home / "vectors.db", rows.path)
        self.store.refresh_listing(TEXT_SPACE.recipe, is_embedded)
        self.space = self.store.enter(TEXT_SPACE, probe())
        named = {i: [(0, key)] for i, key in zip(ids, keys(*texts), strict=True)}
        self.store.list_chunks(self.space, named)
        self.goes_on: Iterator[bool] = iter(())  # told before each page; then True

    def embed(self, *texts: str) -> None:
        """Store the vectors of texts."""
        assert self.store.put(self.space, keys(*texts), vectors(texts)) == []

    def place(self, root: Path, *ids: int) -> None:
        """Put blobs into a workspace."""
        self.rows.run("INSERT INTO workspace(root) VALUES(?)", str(root))
        for blob_id in ids:
            self.rows.run(
                "INSERT INTO file SELECT w.id, ?, 1, 1, 1, 1, ?, NULL "
                "FROM workspace w WHERE w.root = ?",
                f"{blob_id}.py",
                blob_id,
                str(root),
            )

    def has(self, *texts: str) -> bool:
        """Tell whether the store has a vector of each text."""
        found = self.store.read(vectors_of, self.space, keys(*texts))
        return found.keys() == {*keys(*texts)}

    def exchange(self, team: Team, *, writes: bool = False) -> TeamExchange:
        """Return what a member of a team pushes and pulls with."""
        member = team.member(writes=writes, space=TEXT_SPACE)
        member.use(TEXT_SPACE, probe())

        async def repositories_of(blob_ids: Collection[int]) -> list[str]:
            return []

        return TeamExchange(
            self.store,
            member,
            repositories_of,
            may_go_on=lambda: next(self.goes_on, True),
        )
