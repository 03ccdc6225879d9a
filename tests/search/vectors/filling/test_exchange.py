"""What the team has is stored and not embedded; what is embedded is offered."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from byok.search.vectors.filling import TeamExchange
from byok.search.vectors.recipe import is_embedded
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.types import Key, SpaceName, TeamStatus
from tests.fakes.vectors import SPACE, Rows, keys, probe, vector, vectors


class Team:
    """A team's vectors by key, and what it was offered."""

    def __init__(self, *, writes: bool = True) -> None:
        self.has: dict[Key, NDArray[np.float32]] = {}
        self.offers: list[tuple[list[Key], int, tuple[str, ...]]] = []
        self.status = TeamStatus("http://127.0.0.1", "us", writes=writes)
        self.spaces: list[SpaceName] = []

    def use(self, space: SpaceName, probe: NDArray[np.float32]) -> None:
        assert probe.shape == (space.dimensions,)
        self.spaces.append(space)

    async def fetch(self, keys: Sequence[Key]) -> Mapping[Key, NDArray[np.float32]]:
        return {key: self.has[key] for key in keys if key in self.has}

    async def offer(
        self,
        keys: Sequence[Key],
        vectors: NDArray[np.float32],
        *,
        repositories: Sequence[str],
    ) -> int:
        self.offers.append((list(keys), len(vectors), tuple(repositories)))
        return len(keys)

    async def nearest(self, *args: object, **kwargs: object) -> Mapping[Key, float]:
        return {}

    async def close(self) -> None:
        pass


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VectorStore]:
    rows = Rows(tmp_path / "data.db")
    made = VectorStore(tmp_path / "vectors.db", rows.path)
    (blob_id,) = rows.add("a.py", chunks=3)
    made.look("1", is_embedded)
    space = made.enter(SPACE, probe())
    made.list_chunks(space, {blob_id: list(enumerate(keys("a", "b", "c")))})
    yield made
    made.close()


async def test_what_the_team_has_is_stored_and_the_rest_returned(
    store: VectorStore,
) -> None:
    (space,) = store.spaces()
    team = Team()
    a, b, c = keys("a", "b", "c")
    team.has = {a: vector("a"), c: vector("c")}
    exchange = TeamExchange(store, team, lambda blob_id: ())
    exchange.use(space)
    assert team.spaces == [SPACE]
    wanted = {a: ("a", 1), b: ("b", 1), c: ("c", 1)}
    assert await exchange.fetch(space, wanted) == {b: ("b", 1)}
    assert store.vectors_of(space, [a, b, c]).keys() == {a, c}
    assert await exchange.fetch(space, {b: ("b", 1)}) == {b: ("b", 1)}


@pytest.mark.parametrize("writes", [True, False])
async def test_vectors_are_offered_by_repository(
    store: VectorStore, writes: bool
) -> None:
    team = Team(writes=writes)
    names = {1: ["x"], 2: ["x", "y"], 3: []}
    exchange = TeamExchange(store, team, lambda blob_id: names[blob_id])
    a, b, c, d = keys("a", "b", "c", "d")
    wanted = {a: ("a", 1), b: ("b", 2), c: ("c", 3), d: ("d", 1)}
    await exchange.offer(wanted, vectors(["a", "b", "c", "d"]))
    expected = [([a, d], 2, ("x",)), ([b], 1, ("x", "y"))]
    assert team.offers == (expected if writes else [])
