"""A session: what is searched while a model or the files of vectors misbehave."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from byok.core.code_query import BlobNames
from byok.core.errors import UpstreamTimeout, UpstreamUnreachable
from byok.search.index.engine import ContextEngine
from byok.search.index.types import Phase
from byok.search.retrieval.model_aids import NearChunks
from byok.search.retrieval.scope import select_scope
from byok.search.vectors.session import QuestionVectors, Session
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.types import EmbeddingState, EmbeddingStatus
from tests.fakes.engines import engine, indexed, project
from tests.fakes.patience import until
from tests.fakes.vectors import FakeEmbedder, vector

if TYPE_CHECKING:
    pass


@asynccontextmanager
async def filled(
    tmp_path: Path, model: FakeEmbedder
) -> AsyncIterator[tuple[Session, ContextEngine]]:
    """A session over an index of two files that is filled."""
    root = project(tmp_path / "zoo", lion__py="def lion(): pass", cat__py="cat = 1")
    files = tmp_path / "home" / "vectors.db", tmp_path / "e" / "data.db"
    async with indexed(tmp_path / "e", root) as made:
        session = Session(VectorStore(*files), made, model, None)
        session.start(paused=False)
        await reaches(session, EmbeddingState.COMPLETE)
        try:
            yield session, made
        finally:
            await session.close()  # once more than a test may have


async def told(session: Session) -> EmbeddingStatus:
    return await session.describe(EmbeddingStatus(EmbeddingState.STANDBY))


async def reaches(session: Session, state: EmbeddingState) -> None:
    async def is_reached() -> bool:
        return (await told(session)).state is state

    await until(is_reached)


async def near(session: Session, made: ContextEngine, question: str) -> NearChunks:
    find = await session.begin(question)
    assert find is not None
    scope = await select_scope(made, BlobNames(), [])
    return await find(scope.view, scope.view.ids)


async def test_a_question_an_hour_after_the_probe_finds_that_the_model_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byok.search.vectors.filling._IDLE_SECONDS", 0.01)
    model = FakeEmbedder()
    async with filled(tmp_path, model) as (session, made):
        model.weights = "another"
        await near(session, made, "lion")
        monkeypatch.setattr("byok.search.vectors.filling._PROBE_SECONDS", 0)
        await near(session, made, "lion")
        await until(lambda: len(model.asked) == 4)
        await reaches(session, EmbeddingState.COMPLETE)
        await near(session, made, "lion")
        assert model.questions == ["lion", "lion"]


async def test_a_search_that_fails_finds_nothing_and_is_told(tmp_path: Path) -> None:
    async with filled(tmp_path, FakeEmbedder()) as (session, made):
        with closing(sqlite3.connect(tmp_path / "home" / "vectors.db")) as db, db:
            db.execute("DROP TABLE vector")
        for rows in (tmp_path / "home" / "vectors").iterdir():
            os.truncate(rows, 4096)  # so that it is copied again
        assert await near(session, made, "lion") == NearChunks([], {})
        assert "vectors.db" in (await told(session)).error


async def test_a_search_begun_before_the_end_of_a_session_finds_nothing(
    tmp_path: Path,
) -> None:
    async with filled(tmp_path, FakeEmbedder()) as (session, made):
        find = await session.begin("lion")
        assert find is not None
        scope = await select_scope(made, BlobNames(), [])
        await session.close()
        assert await find(scope.view, ()) == NearChunks([], {})


async def test_vectors_are_not_complete_before_the_words_are(tmp_path: Path) -> None:
    async with filled(tmp_path, FakeEmbedder()) as (session, made):
        made.workspaces[0].status.phase = Phase.INDEXING
        assert (await told(session)).state is EmbeddingState.STANDBY
        made.workspaces[0].status.phase = Phase.COMPLETE
        assert (await told(session)).state is EmbeddingState.COMPLETE


async def test_a_model_that_is_started_later_answers_while_filling_is_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byok.search.vectors.filling._FIRST_PAUSE", 0.01)
    async with filled(tmp_path, FakeEmbedder()) as (session, _):
        await session.close()
    model = FakeEmbedder()
    model.failure = UpstreamUnreachable("nobody answers.", upstream="near")
    files = tmp_path / "home" / "vectors.db", tmp_path / "e" / "data.db"
    async with engine(tmp_path / "e", tmp_path / "zoo") as made:
        session = Session(VectorStore(*files), made, model, None)
        session.start(paused=True)

        async def is_told() -> bool:
            return "nobody answers" in (await told(session)).error

        await until(is_told)
        model.failure = None

        async def answers() -> bool:
            return await session.begin("lion") is not None

        await until(answers)
        assert (await told(session)).error == ""
        await session.close()


# The vectors of questions: asked for once, kept, waited for


async def test_a_question_is_asked_once_and_kept() -> None:
    model = FakeEmbedder()
    vectors = QuestionVectors(model, kept=2)
    for question in ("a", "bb", "a", "ccc", "a", "bb"):
        found = await vectors.find(question, 1)
        assert found is not None
        assert (found == vector(question)).all()
    assert model.questions == ["a", "bb", "ccc", "bb"]  # the one unused longest went
    await vectors.find("bb", 2)
    assert model.questions[4:] == ["bb"]  # of a model that was replaced


async def test_a_vector_that_came_too_late_is_there_the_next_time() -> None:
    model = FakeEmbedder()
    model.gate.clear()
    vectors = QuestionVectors(model)
    first = asyncio.ensure_future(vectors.find("a", 1))
    await until(lambda: model.questions == ["a"])
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    model.gate.set()
    assert await vectors.find("a", 1) is not None
    assert model.questions == ["a"]


async def test_a_vector_of_a_model_that_was_replaced_meanwhile_is_not_kept() -> None:
    model = FakeEmbedder()
    model.gate.clear()
    vectors = QuestionVectors(model)
    asked = asyncio.ensure_future(vectors.find("a", 1))
    await until(lambda: model.questions == ["a"])
    model.gate.set()
    await asked
    await vectors.find("a", 2)
    assert model.questions == ["a", "a"]


async def test_a_failure_is_noted_and_not_kept() -> None:
    model = FakeEmbedder()
    vectors = QuestionVectors(model)
    model.failure = UpstreamTimeout("it slept.", upstream="zoo")
    assert await vectors.find("a", 1) is None
    assert "it slept" in vectors.error
    model.failure = None
    assert await vectors.find("a", 1) is not None
    assert vectors.error == ""


async def test_a_model_that_hangs_is_given_up() -> None:
    model = FakeEmbedder()
    model.gate.clear()
    vectors = QuestionVectors(model, seconds=0.01)
    assert await vectors.find("a", 1) is None
    assert "0.01 s" in vectors.error


async def test_only_so_many_questions_are_open_at_a_time() -> None:
    model = FakeEmbedder()
    model.gate.clear()
    vectors = QuestionVectors(model)
    waiting = [asyncio.ensure_future(vectors.find(str(n), 1)) for n in range(8)]
    await until(lambda: len(model.questions) == 8)
    assert await vectors.find("one more", 1) is None
    await vectors.close()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_secrets_in_a_question_are_masked() -> None:
    model = FakeEmbedder()
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    await QuestionVectors(model).find(f"why does\nit refuse {secret}", 1)
    assert "ghp_" not in model.questions[0]
    assert model.questions[0].startswith("why does\nit refuse ")


async def test_who_waits_for_a_vector_when_asking_ends_goes_on_without_one() -> None:
    model = FakeEmbedder()
    model.gate.clear()
    vectors = QuestionVectors(model)
    waiting = asyncio.ensure_future(vectors.find("a", 1))
    await until(lambda: model.questions == ["a"])
    await vectors.close()
    assert await waiting is None
