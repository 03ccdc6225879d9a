"""All that one machine has reaches another one through the team."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from byok.core.errors import NotReady
from byok.search.vectors.team.transfer import Repositories, repository_names
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
    assert await one.transfer(team, writes=True).push() == 8
    assert await one.transfer(team, writes=True).push() == 8
    [stored] = server.collections.values()
    lists = sorted(len(p.get("repo", [])) for _, p in stored.points.values())
    assert lists == [0, *[1] * 7, 2]  # the probe, and 8 texts
    assert await two.transfer(team).pull() == 8
    assert two.has(*TEXTS[:8])
    assert two.store.vectors_of(two.space, keys(TEXTS[25])) == {}
    assert await two.transfer(team).pull() == 0


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
    assert await one.transfer(team, writes=True).push() == 30
    monkeypatch.setattr("byok.search.vectors.team.transfer._PAGE", 4)
    two.goes_on = iter([True, False])
    with pytest.raises(NotReady, match="switched off"):
        await two.transfer(team).pull()
    assert len(two.store.vectors_of(two.space, keys(*TEXTS))) == 4
    one.goes_on = iter([True, True, False])
    with pytest.raises(NotReady, match="switched off"):
        await one.transfer(team, writes=True).push()
    assert next(one.goes_on, None) is None


# Clones of one repository have one name, whatever their addresses look like


SAME = "git.example/owner/name"


def test_folders_are_named_by_their_origin(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c", "d")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:3]:
        git(folder, "init", "-q")
    git(folders[0], "remote", "add", "origin", "git@git.example:owner/name.git")
    git(folders[1], "remote", "add", "origin", "https://git.example/owner/name")
    (folders[0] / "inner").mkdir()
    assert repository_names([*folders, folders[0] / "inner"]) == [SAME]
    assert repository_names([folders[2], folders[3], tmp_path / "none"]) == []


async def test_a_blob_has_the_repositories_of_its_workspaces(tmp_path: Path) -> None:
    zoo = project(tmp_path / "zoo", lion__py="lion", both__py="both")
    farm = project(tmp_path / "farm", both__py="both")
    asked: list[str] = []

    def names_of(given: Iterable[Path]) -> list[str]:
        roots = list(given)
        asked.extend(root.name for root in roots)
        return [f"host/{root.name}" for root in roots]

    async with indexed(tmp_path / "e", zoo, farm) as made:
        found = Repositories(made, names_of)
        first, _ = made.workspaces
        lion, both = (first.blob_of(path) for path in ("lion.py", "both.py"))
        assert lion
        assert both
        assert found.of_blobs([both]) == []  # not asked yet
        await found.look()
        await found.look()
        assert found.of_blobs([both]) == ["host/zoo", "host/farm"]
        assert found.of_blobs([lion]) == ["host/zoo"]
        assert found.of_blobs([10**6]) == []
        assert asked == ["zoo", "farm"]
