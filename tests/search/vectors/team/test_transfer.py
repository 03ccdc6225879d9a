"""All that one machine has reaches another one through the team."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from byok.core.errors import NotReady
from byok.search.vectors.store.open_space import vectors_of
from byok.search.vectors.team.transfer import Repositories
from tests.fakes.engines import indexed, project
from tests.fakes.project import git
from tests.fakes.qdrant_members import Machine, Team
from tests.fakes.qdrant_server import QdrantServer
from tests.fakes.vectors import keys

TEXTS = [f"text {number}" for number in range(30)]


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine]]:
    made = Machine(tmp_path / "one", *TEXTS), Machine(tmp_path / "two", *TEXTS)
    yield made
    for machine in made:
        machine.store.close()


async def test_what_one_machine_pushes_another_pulls(
    machines: tuple[Machine, Machine], team: Team, server: QdrantServer, tmp_path: Path
) -> None:
    one, two = machines
    one.embed(*TEXTS[:20])
    two.embed(*TEXTS[15:18])  # which nobody else has
    roots = [tmp_path / name for name in "abc"]
    for root in roots:
        root.mkdir()
        git(root, "init", "-q")
    git(roots[0], "remote", "add", "origin", "https://host/a")
    git(roots[1], "remote", "add", "origin", "https://host/b")
    one.place(roots[0], *one.ids[:5])
    one.place(roots[1], *one.ids[4:8])
    one.place(roots[2], one.ids[9])
    assert await one.exchange(team, writes=True).push(one.space) == 8
    assert await one.exchange(team, writes=True).push(one.space) == 8
    [stored] = server.collections.values()
    lists = sorted(len(p.get("repo", [])) for _, p in stored.points.values())
    assert lists == [0, *[1] * 7, 2]  # the probe, and 8 texts
    assert await two.exchange(team).pull(two.space) == 8
    assert two.has(*TEXTS[:8])
    assert two.store.read(vectors_of, two.space, keys(TEXTS[25])) == {}
    assert await two.exchange(team).pull(two.space) == 0


async def test_vectors_that_are_switched_off_meanwhile_end_it(
    machines: tuple[Machine, Machine],
    team: Team,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = machines
    one.embed(*TEXTS)
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "https://host/a")
    one.place(tmp_path, *one.ids)
    assert await one.exchange(team, writes=True).push(one.space) == 30
    monkeypatch.setattr("byok.search.vectors.team.transfer._PAGE", 4)
    two.goes_on = iter([True, False])
    with pytest.raises(NotReady, match="switched off"):
        await two.exchange(team).pull(two.space)
    assert len(two.store.read(vectors_of, two.space, keys(*TEXTS))) == 4
    one.goes_on = iter([True, True, False])
    with pytest.raises(NotReady, match="switched off"):
        await one.exchange(team, writes=True).push(one.space)
    assert next(one.goes_on, None) is None


async def test_a_blob_has_the_repositories_of_its_workspaces(tmp_path: Path) -> None:
    zoo = project(tmp_path / "zoo", lion__py="lion", both__py="both")
    farm = project(tmp_path / "farm", both__py="both")
    asked: list[Path] = []

    def name_of(root: Path) -> str:
        asked.append(root)
        return f"host/{root.name}" if root == zoo else ""

    async with indexed(tmp_path / "e", zoo, farm) as made:
        found = Repositories(made, name_of)
        first, _ = made.workspaces
        lion, both = (first.blob_of(path) for path in ("lion.py", "both.py"))
        assert lion
        assert both
        assert await found.of_blobs([10**6]) == []
        assert not asked
        assert await found.of_blobs([lion]) == ["host/zoo"]
        assert await found.of_blobs([both]) == ["host/zoo"]  # the farm has no address
        assert await found.of_blobs([both]) == ["host/zoo"]
        assert asked == [zoo, farm]
