"""All that one machine has reaches another one through the team."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from byok.core.errors import ConfigError, NotReady
from tests.fakes.machines import Machine
from tests.fakes.qdrant_members import Team
from tests.fakes.qdrant_server import QdrantServer, answer
from tests.fakes.repository import git
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


async def test_who_only_reads_cannot_push(
    machines: tuple[Machine, Machine], team: Team, server: QdrantServer
) -> None:
    with pytest.raises(ConfigError, match="only reads") as caught:
        await machines[0].transfer(team).push()
    assert "write = true" in caught.value.hint
    assert server.calls == []


async def test_a_server_that_refuses_is_told_to_the_user(
    machines: tuple[Machine, Machine], team: Team, server: QdrantServer, tmp_path: Path
) -> None:
    one, two = machines
    one.embed(*TEXTS)
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://host/a")
    one.place(root, *one.ids)
    server.fault = answer(status=500)
    with pytest.raises(NotReady, match="status 500"):
        await one.transfer(team, writes=True).push()
    with pytest.raises(NotReady, match="status 500"):
        await machines[1].transfer(team).pull()
    assert two.store.vectors_of(two.space, keys(*TEXTS)) == {}


async def test_a_machine_without_vectors_or_chunks(
    machines: tuple[Machine, Machine], team: Team, tmp_path: Path
) -> None:
    empty = Machine(tmp_path / "three")
    assert await empty.transfer(team, writes=True).push() == 0
    assert await empty.transfer(team, writes=True).pull() == 0
    empty.store.close()


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
