"""The files of a scope, ranked by everything that is known of them."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from byok.core.code_query import BlobNames, Upload
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Phase
from byok.search.retrieval.model_aids import ModelAids
from byok.search.retrieval.query import parse_query
from byok.search.retrieval.ranker import Ranker
from byok.search.retrieval.scope import select_scope
from tests.fakes.engines import InlineWorkers, complete, engine, project, until
from tests.fakes.vector_search import FakeVectors


async def test_ranker_ranks_the_files_of_a_scope_with_their_chunks(
    tmp_path: Path,
) -> None:
    root = project(tmp_path / "zoo", lion__py="def feed_lion(): pass\n", bear__py="x")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [])
        found, entries = Ranker(made).rank_by_words(
            parse_query("feed the lion in bear.py"), scope
        )
    assert [file.path for file in found] == ["lion.py", "bear.py"]
    best = entries[found[0].blob_id]
    assert (best.path, len(best.spans)) == ("lion.py", 1)


async def test_ranker_finds_who_defines_an_identifier(tmp_path: Path) -> None:
    root = project(
        tmp_path / "zoo",
        uses__py="from lion import Lion, lions\n" * 20,
        beasts__py="class Lion:\n    pass\n",
        words__py="def lions(): pass\n",
    )
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [])
        ranker = Ranker(made)
        for asked, path in (
            ("Lion", "beasts.py"),
            ("`zoo.Lion()`", "beasts.py"),
            ("lion", "beasts.py"),
            ("lions", "words.py"),
        ):
            found, _ = ranker.rank_by_words(parse_query(asked), scope)
            assert [f.path for f in found if f.reasons.definition] == [path]
            assert found[0].path == path
        found, _ = ranker.rank_by_words(parse_query("where is the Lion"), scope)
        assert all(file.reasons.definition == 0 for file in found)


@pytest.mark.parametrize("count", [99, 150])
async def test_ranker_ignores_what_very_many_files_define(
    tmp_path: Path, count: int
) -> None:
    functions = {f"f{n:03}__py": f"def run(): return {n}\n" for n in range(count)}
    root = project(tmp_path / "zoo", type__py="class run: pass\n", **functions)
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [])
        found, _ = Ranker(made).rank_by_words(parse_query("run"), scope)
    assert [f.path for f in found if f.reasons.definition] == ["type.py"]


async def test_ranker_finds_nothing_out_of_scope(tmp_path: Path) -> None:
    async with engine(tmp_path / "e") as made:
        _, two = await made.uploads.upload(
            [Upload(b"", "one.py", b"lion one"), Upload(b"", "two.py", b"lion two")]
        )
        await complete(made)
        scope = await select_scope(made, BlobNames("", (two,)), [])
        found, _ = Ranker(made).rank_by_words(parse_query("lion"), scope)
    assert [file.path for file in found] == ["two.py"]


async def test_ranker_shows_nothing_of_a_blob_that_is_gone(tmp_path: Path) -> None:
    root = project(tmp_path / "zoo", lion__py="lion")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [])
        _, entries = Ranker(made).rank_by_words(parse_query("lion"), scope)
        assert (entries[10**6].path, entries[10**6].spans) == ("", [])


async def test_ranker_waits_for_a_few_files_just_saved_and_no_longer(
    tmp_path: Path,
) -> None:
    root = project(tmp_path / "zoo", lion__py="lion")
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        workers.gate.clear()
        (root / "lion.py").write_text("tiger")
        [space] = made.workspaces
        await until(lambda: space.status.phase is Phase.INDEXING)
        ranker = Ranker(made)
        await ranker.wait_until_indexed(0.01)  # it ends, though nothing was indexed
        assert made.indexer.open_tasks
        workers.gate.set()
        await ranker.wait_until_indexed(20)
        scope = await select_scope(made, BlobNames(), [])
        assert ranker.rank_by_words(parse_query("tiger"), scope).files


async def test_what_is_near_joins_what_words_find(tmp_path: Path) -> None:
    root = project(tmp_path / "zoo", lion__py="lion", cat__py="cat")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [])
        lion, cat = scope.blob_of("lion.py"), scope.blob_of("cat.py")
        assert lion
        assert cat
        vectors = FakeVectors(
            ChunkScore(blob_id, 0, 0.9) for blob_id in (lion, cat, 10**6)
        )
        ranker = Ranker(made, lambda: ModelAids(vectors=vectors))
        both, entries = await ranker.rank("the lion", parse_query("the lion"), scope)
        assert [file.path for file in both] == ["lion.py", "cat.py"]
        assert entries[cat].path == "cat.py"
        assert list(vectors.asked) == [lion]
        near = (await ranker.rank("wolf", parse_query("wolf"), scope)).files
        assert [file.path for file in near] == ["cat.py", "lion.py"]
        assert [chunk.ordinal for chunk in near[0].chunks] == [0]


@pytest.mark.parametrize("question", ["lion", "wolf"])
async def test_without_a_vector_words_alone_answer(
    tmp_path: Path, question: str
) -> None:
    root = project(tmp_path / "zoo", lion__py="lion", cat__py="cat")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [])
        query = parse_query(question)
        plain = await Ranker(made).rank(question, query, scope)
        late, none = FakeVectors([]), FakeVectors(None)
        late.come.clear()
        for aids in (ModelAids(vectors=late), ModelAids(vectors=none)):
            ranker = Ranker(made, partial(replace, aids))
            assert (
                await ranker.rank(question, parse_query(question), scope, patience=0.01)
                == plain
            )
        assert late.cancelled == 1  # it does not go on for an answer that was given


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("what is it", False),
        ("?! \U0001f600", False),
        ("", False),
        ("g", True),
        ("会话", True),
        ("where is it cached", True),
    ],
)
async def test_a_vector_is_asked_for_a_question_that_says_something(
    tmp_path: Path, question: str, *, asked: bool
) -> None:
    root = project(tmp_path / "zoo", lion__py="lion")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [])
        vectors = FakeVectors([])
        await Ranker(made, lambda: ModelAids(vectors=vectors)).rank(
            question, parse_query(question), scope
        )
        assert vectors.questions == [question] * asked
