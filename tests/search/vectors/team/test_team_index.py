"""What members of a team get from each other, whatever server keeps it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from byok.core.errors import ConfigError, NotReady
from byok.search.vectors.consent import Consent
from byok.search.vectors.service import EmbeddingPlan, EmbeddingService
from byok.search.vectors.team.team_index import TeamIndex
from byok.search.vectors.types import EmbeddingState, EmbeddingStatus
from tests.fakes.engines import indexed, project, until
from tests.fakes.project import git
from tests.fakes.qdrant_members import Team, embed, key
from tests.fakes.qdrant_server import QdrantServer, answer
from tests.fakes.vectors import LOCAL, FakeEmbedder

TEXTS = [f"def function_{number}(): ..." for number in range(600)]
KEYS = [key(text) for text in TEXTS]
HERE = ["host/owner/here"]


async def test_what_one_member_gives_another_gets(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    reader = any_team.member()
    vectors = embed(*TEXTS)
    assert await writer.offer(KEYS, vectors, repositories=HERE) == 600
    got = await reader.fetch([*KEYS, key("unknown")])
    assert got.keys() == {*KEYS}
    cosines = [float(np.dot(got[k], row)) for k, row in zip(KEYS, vectors, strict=True)]
    assert min(cosines) > 0.9999
    assert all(row.dtype == np.float32 and row.shape == (8,) for row in got.values())
    assert (writer.status.pushed, reader.status.fetched) == (600, 600)
    assert (writer.status.note, reader.status.note) == ("", "")


async def test_what_the_team_has_is_not_overwritten(any_team: Team) -> None:
    first, second = any_team.member(writes=True), any_team.member(writes=True)
    await first.offer(KEYS[:1], embed("one"), repositories=HERE)
    await second.offer(KEYS[:1], embed("other"), repositories=["host/b"])
    got = await any_team.member().fetch(KEYS[:1])
    assert float(np.dot(got[KEYS[0]], embed("one")[0])) > 0.999


async def test_the_nearest_of_a_repository(any_team: Team) -> None:
    writer, reader = any_team.member(writes=True), any_team.member()
    there = ["host/owner/there"]
    await writer.offer(KEYS[:40], embed(*TEXTS[:40]), repositories=HERE)
    await writer.offer(KEYS[30:60], embed(*TEXTS[30:60]), repositories=there)
    await reader.fetch(KEYS[:1])
    question = embed("where are functions?")
    cosines = (embed(*TEXTS[30:60]) @ question[0]).tolist()
    pairs = zip(cosines, KEYS[30:60], strict=True)
    expected = {name: cosine for cosine, name in sorted(pairs, reverse=True)[:5]}
    got = await reader.nearest(question, repositories=there, keys=KEYS, limit=5)
    assert got.keys() == expected.keys()
    assert all(abs(got[name] - expected[name]) < 0.002 for name in got)
    both = [*there, *HERE, ""]
    found = await reader.nearest(question, repositories=both, keys=KEYS, limit=100)
    assert found.keys() == {*KEYS[:60]}
    # What this member does not have is left out, and nobody else's is shown.
    few = KEYS[35:37]
    found = await reader.nearest(question, repositories=there, keys=few, limit=100)
    assert found.keys() == {*few}
    other = await reader.nearest(question, repositories=["x"], keys=KEYS, limit=9)
    assert other == {}


async def test_a_reader_creates_and_writes_nothing(any_team: Team) -> None:
    reader = any_team.member()
    assert await reader.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE) == 0
    assert await reader.fetch(KEYS[:3]) == {}
    assert "No writer has filled" in reader.status.note
    writer = any_team.member(writes=True)
    await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE)
    assert await reader.offer(KEYS[3:6], embed(*TEXTS[3:6]), repositories=HERE) == 0
    assert (await writer.fetch(KEYS[:6])).keys() == {*KEYS[:3]}


async def test_another_model_behind_the_same_name_is_refused(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE)
    for writes in (False, True):
        other = any_team.member(writes=writes, model="replaced")
        assert await other.fetch(KEYS[:3]) == {}
        rows = embed(*TEXTS[3:6], model="replaced")
        assert await other.offer(KEYS[3:6], rows, repositories=HERE) == 0
        assert "another model" in other.status.note
    assert (await writer.fetch(KEYS[:6])).keys() == {*KEYS[:3]}


async def test_another_salt_is_refused(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE)
    other = any_team.member(writes=True, salt="the salt of another team")
    assert await other.fetch(KEYS[:3]) == {}
    assert "another salt" in other.status.note


async def test_a_text_of_many_repositories_lists_some_of_them(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    names = [f"host/{number}" for number in range(70)]
    for name in names:
        await writer.offer(KEYS[:1], embed(TEXTS[0]), repositories=[name])
    question = embed(TEXTS[0])
    for name, has in ((names[0], True), (names[63], True), (names[64], False)):
        got = await writer.nearest(
            question, repositories=[name], keys=KEYS[:1], limit=1
        )
        assert bool(got) is has
    assert writer.status.note == ""


# Whole members of a team: what one has embedded, the model of another is not asked


SECRET = 'API_KEY = "sk-canary0123456789abcdef0123456789"'


@asynccontextmanager
async def at_work(
    home: Path, model: FakeEmbedder, member: TeamIndex | None
) -> AsyncIterator[EmbeddingService]:
    """A member with the same repository as all others."""
    root = project(
        home / "zoo", lion__py=f"def lion():\n    pass\n{SECRET}\n", cat__py="cat = 1"
    )
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "git@git.example:owner/zoo.git")
    files = home / "vectors.db", home / "e" / "data.db"
    service = EmbeddingService(*files, Consent(home / "consent.json"))
    await service.configure(EmbeddingPlan(LOCAL, lambda: model, lambda: member))
    async with indexed(home / "e", root) as made:
        await service.open(made)
        try:
            yield service
        finally:
            await service.close()


async def until_complete(service: EmbeddingService) -> EmbeddingStatus:
    async def is_complete() -> bool:
        return (await service.status()).state is EmbeddingState.COMPLETE

    await until(is_complete)
    return await service.status()


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("one", "two")]
    for home in made:
        home.mkdir(mode=0o700)
    return made


@pytest.mark.case("B127")
async def test_what_one_member_has_embedded_another_fetches(
    homes: list[Path], server: QdrantServer, team: Team
) -> None:
    first, second = FakeEmbedder(), FakeEmbedder()
    async with at_work(homes[0], first, team.member(writes=True)) as service:
        told = await until_complete(service)
        assert len(first.asked) == told.embedded == 2
        assert await service.push() == 2
        told = await service.status()
        assert told.team is not None
        assert (told.team.pushed, told.team.note) == (2, "")
        assert told.team.collection in server.collections
    async with at_work(homes[1], second, team.member()) as service:
        told = await until_complete(service)
        assert told.embedded == 2
        assert second.asked == []
        assert told.team is not None
        assert told.team.fetched == 2
        assert await service.pull() == 0
        with pytest.raises(ConfigError, match="only reads"):
            await service.push()
    sent = b"\n".join(server.bodies)
    for planted in (b"lion", b"zoo", b"owner", b"cat", b"sk-canary", b"git.example"):
        assert planted not in sent


@pytest.mark.case("F49")
async def test_without_the_server_a_member_embeds_by_itself(
    homes: list[Path], server: QdrantServer, team: Team
) -> None:
    server.fault = answer(status=500)
    model = FakeEmbedder()
    async with at_work(homes[0], model, team.member(writes=True)) as service:
        told = await until_complete(service)
        assert (told.embedded, told.error) == (2, "")
        assert "status 500" in told.note
        assert len(model.asked) == 2
        with pytest.raises(NotReady, match="status 500"):
            await service.push()
        server.fault = None
        team.clock.now += 700
        assert await service.push() == 2
