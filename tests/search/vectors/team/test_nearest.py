"""Questions of a machine without vectors, answered by those of its colleagues."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.core.code_query import BlobNames
from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.retrieval.model_aids import NearChunks
from byok.search.retrieval.scope import select_scope
from byok.search.vectors.session import Session
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.team_index import TeamIndex
from byok.search.vectors.team.transfer import TeamExchange
from byok.search.vectors.types import EmbeddingState, EmbeddingStatus
from tests.fakes.engines import indexed, project
from tests.fakes.patience import PATIENCE, until
from tests.fakes.project import git
from tests.fakes.qdrant_members import Machine, Team
from tests.fakes.qdrant_server import QdrantServer, cut
from tests.fakes.vectors import SPACE, FakeEmbedder, keys, probe, vector, vectors

HERE = ["host/a"]
NOTHING = NearChunks([], {})
TEXTS = [f"text {number}" for number in range(300)]
QUERY = "/points/query"


@asynccontextmanager
async def at_work(
    home: Path, model: FakeEmbedder, member: TeamIndex | None, *, paused: bool = False
) -> AsyncIterator[tuple[Session, ContextEngine]]:
    """A session of a member; all have the same repository."""
    files = {f"f{number}__py": f"def f{number}(): pass" for number in range(5)}
    root = project(home / "zoo", **files)
    if not (root / ".git").exists():
        git(root, "init", "-q")
        git(root, "remote", "add", "origin", "git@git.example:owner/zoo.git")
    async with indexed(home / "e", root) as made:
        paths = home / "vectors.db", home / "e" / "data.db"
        session = Session(VectorStore(*paths), made, model, member)
        session.start(paused=paused)
        try:
            yield session, made
        finally:
            await session.close()


async def until_filled(session: Session) -> None:
    async def is_filled() -> bool:
        told = await session.describe(EmbeddingStatus(EmbeddingState.STANDBY))
        return told.state is EmbeddingState.COMPLETE

    await until(is_filled)


async def ask(session: Session, made: ContextEngine, question: str) -> NearChunks:
    async with asyncio.timeout(PATIENCE):
        while (find := await session.begin(question)) is None:
            await asyncio.sleep(0.01)
    scope = await select_scope(made, BlobNames(), [])
    return _by_path(made, await find(scope.view, scope.view.ids))


def _by_path(made: ContextEngine, near: NearChunks) -> NearChunks:
    """Number files by their paths: two indexes of them give other ids."""
    [space] = made.workspaces
    places = {space.blob_of(p): n for n, p in enumerate(sorted(space.paths()))}

    def renumber(chunk: ChunkScore) -> ChunkScore:
        return chunk._replace(blob_id=places[chunk.blob_id])

    best = map(renumber, near.best.values())
    return NearChunks(
        [renumber(chunk) for chunk in near.nearest],
        {chunk.blob_id: chunk for chunk in best},
    )


def homes(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "one", tmp_path / "two"
    for home in made:
        home.mkdir(mode=0o700)
    return made


def order(near: NearChunks) -> list[tuple[int, int]]:
    return [chunk[:2] for chunk in near.nearest]


async def replaced(
    tmp_path: Path, team: Team, member: TeamIndex | None
) -> tuple[NearChunks, NearChunks]:
    """Return what the writer finds, and then a member whose model is a new one.

    The writer has filled its store with the new model; the other one has filled its own
    with the old one, and is paused.
    """
    old, new = FakeEmbedder(), FakeEmbedder()
    new.weights = new.model = "another"
    one, two = homes(tmp_path)
    writer = team.member(writes=True)
    async with at_work(one, new, writer) as (session, made):
        await until_filled(session)
        expected = await ask(session, made, "which?")
    async with at_work(two, old, None) as (session, made):
        await until_filled(session)
    asked = len(new.asked)
    async with at_work(two, new, member, paused=True) as (session, made):
        got = await ask(session, made, "which?")
        assert await ask(session, made, "which?") == got
    assert len(new.asked) == asked  # nothing was embedded for it
    return expected, got


async def test_a_new_model_has_answers_at_once(tmp_path: Path, any_team: Team) -> None:
    expected, got = await replaced(tmp_path, any_team, any_team.member())
    assert len(got.nearest) == 5
    assert order(got) == order(expected)
    assert got.best.keys() == expected.best.keys()
    for mine, its in zip(got.nearest, expected.nearest, strict=True):
        assert abs(mine.score - its.score) < 0.01
        assert got.best[mine.blob_id] == mine


async def test_who_has_vectors_sends_no_question(
    tmp_path: Path, server: QdrantServer, team: Team
) -> None:
    one, _ = homes(tmp_path)
    member = team.member(writes=True)
    async with at_work(one, FakeEmbedder(), member) as (session, made):
        await until_filled(session)
        assert len((await ask(session, made, "which?")).nearest) == 5
    assert not [call for call in server.calls if call.endswith(QUERY)]


@pytest.mark.case("F49")
async def test_without_the_server_a_question_is_answered_as_without_a_team(
    tmp_path: Path, server: QdrantServer, team: Team
) -> None:
    (tmp_path / "a").mkdir()
    _, alone = await replaced(tmp_path / "a", team, None)

    async def only_reader(request: Any) -> Any:
        return await cut(request) if QUERY in request.path else None

    server.fault = only_reader
    member = team.member()
    (tmp_path / "b").mkdir()
    _, got = await replaced(tmp_path / "b", team, member)
    assert got == alone == NOTHING
    assert member.status.note
    assert len([call for call in server.calls if call.endswith(QUERY)]) == 1


async def here(blob_ids: Collection[int]) -> list[str]:
    return HERE


async def nowhere(blob_ids: Collection[int]) -> list[str]:
    return []


class Asker:
    """A machine without vectors whose colleague has those of the first texts."""

    def __init__(self, machine: Machine, member: TeamIndex) -> None:
        self.machine, self.member = machine, member
        self.view = View("v", frozenset(machine.ids), 0)
        member.use(SPACE, probe())
        self.search = TeamExchange(machine.store, member, here)

    async def near(self, *asked: int, view: View | None = None) -> NearChunks:
        ids = [self.machine.ids[number] for number in asked]
        question = vector("which?")
        return await self.search.near(
            self.machine.space, question, view or self.view, ids
        )

    def expected(self, count: int) -> list[ChunkScore]:
        cosines = (vectors(TEXTS[:count]) @ vector("which?")).tolist()
        pairs = zip(self.machine.ids, cosines, strict=False)
        return sorted((ChunkScore(i, 0, c) for i, c in pairs), key=lambda c: -c.score)


async def offer(team: Team, count: int) -> None:
    writer = team.member(writes=True, space=SPACE)
    writer.use(SPACE, probe())
    rows = vectors(TEXTS[:count])
    assert await writer.offer(keys(*TEXTS[:count]), rows, repositories=HERE) == count


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "m", *TEXTS)
    yield made
    made.store.close()


async def test_asked_blobs_have_a_score_though_many_are_nearer(
    machine: Machine, any_team: Team
) -> None:
    await offer(any_team, 250)
    asker = Asker(machine, any_team.member(space=SPACE))
    expected = asker.expected(250)
    number_of = {blob_id: number for number, blob_id in enumerate(machine.ids)}
    far, farthest = (number_of[hit.blob_id] for hit in expected[-2:])
    got = await asker.near(far, farthest, 299)
    assert len(got.nearest) == 100
    wanted = {hit.blob_id for hit in expected[:95]}  # the last ones may be equal
    assert wanted <= {hit.blob_id for hit in got.nearest}
    assert [*got.best] == [machine.ids[far], machine.ids[farthest]]
    assert abs(got.best[machine.ids[farthest]].score - expected[-1].score) < 0.01


async def test_nothing_outside_of_the_view_is_found(
    machine: Machine, any_team: Team
) -> None:
    await offer(any_team, 30)
    asker = Asker(machine, any_team.member(space=SPACE))
    view = View("few", frozenset(machine.ids[:3]), 0)
    got = await asker.near(1, 5, view=view)
    assert {hit.blob_id for hit in got.nearest} == {*machine.ids[:3]}
    assert [*got.best] == [machine.ids[1]]
    assert await asker.near(view=View("none", frozenset([10**6]), 0)) == NOTHING


async def test_outside_of_repositories_or_without_leave_nobody_is_asked(
    machine: Machine, server: QdrantServer, team: Team
) -> None:
    await offer(team, 30)
    before = len(server.calls)
    view = View("v", frozenset(machine.ids), 0)
    for searches, repositories_of in ((True, nowhere), (False, here)):
        member = team.member(space=SPACE, searches=searches)
        member.use(SPACE, probe())
        search = TeamExchange(machine.store, member, repositories_of)
        assert await search.near(machine.space, vector("q"), view, []) == NOTHING
    assert len(server.calls) == before
