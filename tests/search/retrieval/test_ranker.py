"""The files of a scope, ranked by everything that is known of them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from byok.core.code_query import BlobNames, RemoteStatus
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Commit, CommitHistory, Kind
from byok.search.retrieval.model_aids import ModelAids, NearChunks, RemoteAnswer
from byok.search.retrieval.query import Query, parse_query, with_english
from byok.search.retrieval.rank import (
    FileEntry,
    HistorySignals,
    JoinedHistorySignals,
    RankedFile,
    Reasons,
)
from byok.search.retrieval.ranker import Ranker, find_related_words, fuse
from byok.search.retrieval.retriever import rank_commits, render_commits
from byok.search.retrieval.scope import select_scope
from tests.fakes.engines import FakeVectors, indexed, project
from tests.fakes.project import history


async def test_ranker_finds_who_defines_an_identifier(tmp_path: Path) -> None:
    root = project(
        tmp_path / "zoo",
        uses__py="from lion import Lion, lions\n" * 20,
        beasts__py="class Lion:\n    pass\n",
        words__py="def lions(): pass\n",
    )
    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        ranker = Ranker(made)
        for asked, path in (
            ("Lion", "beasts.py"),
            ("`zoo.Lion()`", "beasts.py"),
            ("lion", "beasts.py"),
            ("lions", "words.py"),
        ):
            found = ranker.rank_by_words(parse_query(asked), scope).files
            assert [f.path for f in found if f.reasons.definition] == [path]
            assert found[0].path == path
        found = ranker.rank_by_words(parse_query("where is the Lion"), scope).files
        assert all(file.reasons.definition == 0 for file in found)


async def test_ranker_ignores_what_very_many_files_define(tmp_path: Path) -> None:
    functions = {f"f{n:03}__py": f"def run(): return {n}\n" for n in range(99)}
    root = project(tmp_path / "zoo", type__py="class run: pass\n", **functions)
    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        found = Ranker(made).rank_by_words(parse_query("run"), scope).files
    assert [f.path for f in found if f.reasons.definition] == ["type.py"]


async def test_what_is_near_joins_what_words_find(tmp_path: Path) -> None:
    root = project(tmp_path / "zoo", lion__py="lion", cat__py="cat")
    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        lion, cat = scope.blob_of("lion.py"), scope.blob_of("cat.py")
        assert lion
        assert cat
        vectors = FakeVectors(
            ChunkScore(blob_id, 0, 0.9) for blob_id in (lion, cat, 10**6)
        )
        ranker = Ranker(made, lambda: ModelAids(vectors=vectors))
        both, entries, *_ = await ranker.rank(
            "the lion", parse_query("the lion"), scope
        )
        assert [file.path for file in both] == ["lion.py", "cat.py"]
        assert entries[cat].path == "cat.py"
        assert list(vectors.asked) == [lion]
        near = (await ranker.rank("wolf", parse_query("wolf"), scope)).files
        assert [file.path for file in near] == ["cat.py", "lion.py"]
        assert [chunk.ordinal for chunk in near[0].chunks] == [0]


@pytest.mark.parametrize(
    ("question", "may_wait", "is_said"),
    [
        ("throw old entries away", True, False),
        ("wolves of the sea", True, False),
        ("evict the stale entry", True, True),
        ("throw old entries away", False, True),
    ],
)
async def test_words_of_code_are_wanted_where_no_code_says_the_question(
    tmp_path: Path, question: str, *, may_wait: bool, is_said: bool
) -> None:
    root = project(
        tmp_path / "shop",
        cache__py="def evict():\n    # a stale entry\n    stale.entry()\n",
        errors__py="def throw(error): raise error\n",
        dates__py="def is_old(day): return day < today\n",
        doors__py="def walk_away(): pass\n",
    )
    answers = list[bool]()

    async def words(_: str, query: Query, is_said: Callable[[], bool]) -> Query:
        answers.append(is_said())
        return with_english(query, {"evict": 0.5})

    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        ranker = Ranker(made, lambda: ModelAids(words=words))
        query = parse_query(question)
        found = await ranker.rank(question, query, scope, may_wait=may_wait)
    assert answers == [is_said]
    assert "cache.py" in [file.path for file in found.files]


async def test_without_a_vector_words_alone_answer(tmp_path: Path) -> None:
    root = project(tmp_path / "zoo", lion__py="lion", cat__py="cat")
    query = parse_query("lion")
    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        plain = await Ranker(made).rank("lion", query, scope)
        late, none = FakeVectors([]), FakeVectors(None)
        late.come.clear()
        for aids in (ModelAids(vectors=late), ModelAids(vectors=none)):
            ranker = Ranker(made, partial(replace, aids))
            assert await ranker.rank("lion", query, scope, patience=0.01) == plain
        assert late.cancelled == 1  # it does not go on for an answer that was given


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("what is it", False),
        ("会话", True),
    ],
)
async def test_a_vector_is_asked_for_a_question_that_says_something(
    tmp_path: Path, question: str, *, asked: bool
) -> None:
    root = project(tmp_path / "zoo", lion__py="lion")
    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        vectors = FakeVectors([])
        await Ranker(made, lambda: ModelAids(vectors=vectors)).rank(
            question, parse_query(question), scope
        )
        assert vectors.questions == [question] * asked


class _Blob(NamedTuple):
    path: str
    kind: Kind = Kind.CODE


_BLOBS = {
    1: _Blob("first.py"),
    2: _Blob("second.py"),
    3: _Blob("third.py"),
    4: _Blob("app.yaml", Kind.CONF),
    5: _Blob("test_a.py", Kind.TEST),
}


def _by_blob(blob_id: int) -> FileEntry | None:
    blob = _BLOBS.get(blob_id)
    return FileEntry(blob_id, *blob) if blob else None


def _found(blob_id: int, score: float, *chunks: tuple[int, float]) -> RankedFile:
    """A file that was found by words."""
    scored = tuple(ChunkScore(blob_id, *chunk) for chunk in chunks)
    path, kind = _BLOBS[blob_id]
    reasons = Reasons(score, 0.0, 0.0, 1.0, 0.0)
    return RankedFile(blob_id, path, kind, score, scored, reasons)


def _near(
    *chunks: tuple[int, int, float], best: tuple[int, int, float] | None = None
) -> NearChunks:
    nearest = [ChunkScore(*chunk) for chunk in chunks]
    return NearChunks(nearest, {best[0]: ChunkScore(*best)} if best else {})


_TWO = [_found(1, 10.0, (0, 8.0), (1, 4.0)), _found(2, 9.5, (0, 9.0))]


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        (_near(), {"first.py": 10.0, "second.py": 9.5}),
        # Nearness is relative to the nearest and the farthest candidate.
        (
            _near((2, 0, 0.9), (1, 0, 0.8)),
            {"second.py": 12.5, "first.py": 10.0},
        ),
        (
            _near((2, 0, 0.9), (3, 0, 0.85), (1, 0, 0.8)),
            {"second.py": 12.5, "first.py": 10.0, "third.py": 1.5},
        ),
        # Only the nearest chunk of a file counts.
        (
            _near((2, 0, 0.9), (2, 1, 0.9), (2, 2, 0.7), best=(1, 0, 0.7)),
            {"second.py": 12.5, "first.py": 10.0},
        ),
        # A single candidate is the nearest one.
        (_near((2, 0, -0.1), best=(1, 0, -0.1)), {"first.py": 13.0, "second.py": 12.5}),
        # A file that words found counts by its best chunk, near or not.
        (
            _near((3, 0, 0.9), best=(1, 1, 0.6)),
            {"first.py": 10.0, "second.py": 9.5, "third.py": 3.0},
        ),
        # Configuration counts less.
        (
            _near((4, 0, 0.9), (3, 0, 0.9), (1, 0, 0.1)),
            {"first.py": 10.0, "second.py": 9.5, "third.py": 3.0, "app.yaml": 1.8},
        ),
        # A blob that left the view meanwhile is no file.
        (_near((9, 0, 0.9), (1, 0, 0.8)), {"first.py": 10.0, "second.py": 9.5}),
    ],
)
def test_scores_are_added(near: NearChunks, expected: dict[str, float]) -> None:
    files = fuse(_TWO, near, _by_blob)
    assert {file.path: round(file.score, 6) for file in files} == expected
    assert [file.path for file in files] == list(expected)


def test_without_words_the_nearest_come_first() -> None:
    near = _near((2, 3, 0.9), (1, 0, 0.85), (2, 1, 0.8), (4, 0, 0.7))
    files = fuse([], near, _by_blob)
    assert [file.path for file in files] == ["second.py", "first.py"]
    assert [chunk.ordinal for chunk in files[0].chunks] == [3, 1]


def test_the_kind_that_a_question_names_counts_more() -> None:
    near = _near((5, 0, 0.9), (1, 0, 0.8))
    [plain] = [f for f in fuse(_TWO, near, _by_blob) if f.path == "test_a.py"]
    named = fuse(_TWO, near, _by_blob, {Kind.TEST: 0.6})
    [asked_for] = [file for file in named if file.path == "test_a.py"]
    assert plain.score < asked_for.score


def test_near_chunks_are_shown_beside_those_that_match() -> None:
    near = _near((1, 7, 0.9), (1, 1, 0.8), (2, 0, 0.5))
    [first, _] = fuse(_TWO, near, _by_blob)
    assert [chunk.ordinal for chunk in first.chunks] == [0, 1, 7]
    assert first.chunks[0].score == 8.0


def test_another_version_of_a_file_that_words_found_adds_nothing() -> None:
    def file_of_blob(blob_id: int) -> FileEntry | None:
        return FileEntry(blob_id, "first.py", Kind.CODE)

    files = fuse(_TWO[:1], _near((8, 0, 0.9), (1, 0, 0.1)), file_of_blob)
    assert [(file.blob_id, file.score) for file in files] == [(1, 10.0)]


_FIVE = [
    _found(1, 10.0, (0, 8.0)),
    _found(2, 9.5, (0, 9.0)),
    _found(3, 9.0, (0, 9.0)),
    _found(4, 8.0, (0, 9.0)),
    _found(5, 7.0, (0, 9.0)),
]


def test_a_file_still_without_a_vector_neither_gains_nor_loses() -> None:
    near = _near((2, 0, 0.9), (3, 0, 0.7), (4, 0, 0.8))
    files = {file.path: file.vector for file in fuse(_FIVE, near, _by_blob)}
    assert files == {
        "second.py": pytest.approx(3.0),
        "first.py": pytest.approx(1.5),  # the mean of the three others
        "third.py": 0.0,
        "app.yaml": pytest.approx(1.5),
        "test_a.py": 0.0,  # never has one
    }


@pytest.mark.parametrize(
    ("near", "used"),
    [
        ([2, 3], True),
        ([2], False),
        ([], False),
        ([5], False),
    ],
)
def test_words_alone_decide_where_most_vectors_are_missing(
    near: list[int], *, used: bool
) -> None:
    found = _near(*((blob_id, 0, 0.9) for blob_id in near))
    assert (fuse(_FIVE, found, _by_blob) != _FIVE) is used


def test_a_file_known_by_its_history_alone_is_not_waited_for() -> None:
    by_history = _found(3, 1.0)
    files = fuse([*_TWO, by_history], _near((1, 0, 0.9), (2, 0, 0.8)), _by_blob)
    assert files[2] == by_history


# What was said when files changed, and which changed together


def scores(
    signals: HistorySignals | JoinedHistorySignals, text: str
) -> dict[str, float]:
    return signals.text_scores(parse_query(text).terms)


SAID = history(("retry on timeout", "a"), ("colour", "b"))
GONE = history(("retry", "a gone"), ("retry", "gone"))
MANY = CommitHistory("0" * 40, (Commit("0" * 40, 0, "retry", ("a", "b"), 31),))


@pytest.mark.parametrize(
    ("commits", "question", "found"),
    [
        (SAID, "the timeouts", ["a"]),
        (SAID, "lion", []),
        (GONE, "retry", ["a"]),  # of the files that are still there
        (MANY, "retry", []),  # of too many files
        (history(("fix the file", "a")), "fix the file", []),  # words of any task
    ],
)
def test_history_signal_finds_files_by_the_words_of_their_commits(
    commits: CommitHistory, question: str, found: list[str]
) -> None:
    assert list(scores(HistorySignals(commits, "ab"), question)) == found


def test_history_signal_of_a_commit_of_few_files_is_stronger() -> None:
    signals = HistorySignals(
        history(("retry", "a"), ("retry", "b c d e")), ["a", "b", "c", "d", "e", "f"]
    )
    found = scores(signals, "retry")
    assert found["a"] > found["b"] == found["c"]


def test_history_signal_weighs_rare_and_important_words_more() -> None:
    commits = [("common", f"f{n}") for n in range(9)]
    signals = HistorySignals(
        history(*commits, ("common", "a"), ("rare", "b")),
        ["a", "b", *(f"f{n}" for n in range(9))],
    )
    found = scores(signals, "common rare")
    assert found["b"] > found["a"]
    half = signals.text_scores({"rare": 0.5})
    assert half["b"] == pytest.approx(signals.text_scores({"rare": 1.0})["b"] / 2)


def test_history_signal_passes_a_tenth_on_to_files_changed_together() -> None:
    signals = HistorySignals(
        history(("x", "a b"), ("x", "a b"), ("x", "a c"), ("x", "d")), "abcd"
    )
    found = signals.cochange({"a": 3.0, "d": 5.0, "unknown": 9.0})
    assert found == pytest.approx({"b": 0.2, "c": 0.1})
    assert HistorySignals(GONE, "a").cochange({"a": 1.0, "gone": 1.0}) == {}
    assert HistorySignals(MANY, "ab").cochange({"a": 1.0}) == {}


def test_joined_signals_speak_of_whole_paths() -> None:
    one = HistorySignals(history(("retry", "a b")), ["a", "b"])
    two = HistorySignals(history(("retry", "a c")), ["a", "c"])
    joined = JoinedHistorySignals({"one/": one, "two/": two})
    assert set(scores(joined, "retry")) == {"one/a", "one/b", "two/a", "two/c"}
    assert joined.cochange({"one/a": 1.0}) == pytest.approx({"one/b": 0.1})
    assert JoinedHistorySignals({"": one}).cochange({"a": 1.0}) == one.cochange(
        {"a": 1.0}
    )
    assert scores(JoinedHistorySignals({}), "retry") == {}


# Answering from commits: what fits best, newest first, in the room there is


DAY = 86_400


def commit(message: str, *files: str, time: int = DAY, touched: int = 0) -> Commit:
    return Commit("0123456789abcdef", time, message, files, touched or len(files))


FERRY = commit("Sell tickets for the ferry", "sales/counter.py")
PRICE = commit("Round prices", "ferry/prices.py")
OTHER = commit("Spelling", "README.md")


def test_commit_search_counts_words_of_messages_and_paths_newest_first() -> None:
    found = rank_commits([OTHER, FERRY, PRICE], {"ferri": 1.0, "ticket": 1.0})
    assert found == [FERRY, PRICE]
    equal = [commit("lion", time=2 * DAY), commit("lion", time=DAY)]
    assert rank_commits(equal, {"lion": 1.0}) == equal


def test_a_commit_is_shown_with_its_day_subject_and_files() -> None:
    text = render_commits([commit("Lion\n\nIt roars.", "a.py", touched=3)], 1000)
    assert text == (
        "The following commits were retrieved:\n"
        "Commit: 0123456789ab 1970-01-02 Lion\n"
        "    It roars.\n"
        "  a.py\n"
    )


def test_only_whole_commits_are_shown() -> None:
    assert render_commits([FERRY, PRICE], 120).count("Commit: ") == 1
    for limit in range(200):
        assert len(render_commits([FERRY, PRICE], limit)) <= limit


@pytest.mark.parametrize("time", [-1, 0, 2**40])
def test_commit_search_with_an_odd_date_and_name(time: int) -> None:
    text = render_commits([commit("a\x1b[31m", "new\nline", time=time)], 1000)
    assert "\x1b" not in text
    assert "  new\\nline\n" in text
    assert render_commits([commit("")], 1000).startswith("The following commits")


@pytest.mark.case("B116")
@pytest.mark.parametrize("above", ["", "Add the key\n\n", "Key:\n\n    "])
def test_commit_search_masks_a_private_key_over_several_lines(above: str) -> None:
    body = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 3
    lines = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----", "It."]
    text = render_commits([commit(above + "\n".join(lines))], 2000)
    assert body[0] not in text
    assert text.count("[redacted]") == 3
    assert "    It.\n" in text


# The pieces that match best say what else the right code says


SHARES = {"purg": 0.001, "stale": 0.02, "return": 0.6, "lion": 0.01, "unseen": 0.0}


def beside(question: str, *lines: str) -> dict[str, float]:
    pieces = [(2.0, [line]) for line in lines]
    return find_related_words(
        parse_query(question), pieces, lambda term: SHARES.get(term, 1)
    )


def test_rare_words_of_the_best_pieces_weigh_a_tenth_of_those_of_the_question() -> None:
    found = beside("the old lion", "return purge lion stale", "return purge unseen")
    assert list(found) == ["purg", "stale"]
    assert found["purg"] == pytest.approx(0.1)


def test_of_words_that_say_as_much_the_first_are_taken() -> None:
    words = [f"{one}{two}zz" for one in "abcdef" for two in "abcdef"]
    found = find_related_words(parse_query("lion"), [(2.0, words)], lambda _: 0.001)
    assert len(found) < len(words)
    assert list(found) == words[: len(found)]


@pytest.mark.parametrize("lines", [(), ("",), ("return lion unseen",)])
def test_nothing_is_beside_where_no_rare_word_is(lines: tuple[str, ...]) -> None:
    assert beside("the old lion", *lines) == {}


class _NoServer:
    """A search server beside the index, which ranking never asks."""

    status = RemoteStatus("https://host", True, 0, 0, "", 0.0)

    def begin(
        self, question: str, roots: Sequence[Path]
    ) -> "asyncio.Task[RemoteAnswer]":
        raise AssertionError("it was asked")


async def test_a_search_server_changes_no_rank_of_several_questions(
    tmp_path: Path,
) -> None:
    root = project(
        tmp_path / "zoo",
        lion__py="def feed_lion(): pass\n",
        cat__py="def wash_cat(): pass\n",
        both__py="feed wash lion cat\n",
    )
    question = "Where is the lion fed? Where is the cat washed?"
    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        alone, beside = [
            await Ranker(made, lambda: aids).rank(  # noqa: B023
                question, parse_query(question), scope
            )
            for aids in (ModelAids(), ModelAids(remote=_NoServer()))
        ]
        assert alone.files == beside.files


async def test_a_file_without_a_word_of_the_question_is_found_by_its_neighbours(
    tmp_path: Path,
) -> None:
    noise = {f"n{n:02}__py": f"def walk_{n}(): return {n}\n" for n in range(60)}
    root = project(
        tmp_path / "zoo",
        old__py="# throw old entries away\ndef sweep_stale(): return evict()\n",
        cache__py="def evict(): pass\n",
        **noise,
    )
    async with indexed(tmp_path / "e", root) as made:
        scope = await select_scope(made, BlobNames(), [])
        ranker = Ranker(made)
        for question, paths in (
            ("throw old entries away", ["old.py", "cache.py"]),
            ("what is sweep_stale", ["old.py"]),
            ("xyzzy plugh", []),
        ):
            files = ranker.rank_by_words(parse_query(question), scope).files
            assert [file.path for file in files] == paths
