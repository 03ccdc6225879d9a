"""Chunks become files in the order in which a reader would want them."""

from collections.abc import Mapping, Sequence

import pytest

from byok.search.index.files.languages import kind_of
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Kind
from byok.search.retrieval.query import parse_query
from byok.search.retrieval.rank import (
    FileEntry,
    HistorySignals,
    JoinedHistorySignals,
    RankedFile,
    rank,
)
from tests.fakes.project import history


def ranked(
    scores: Mapping[str, Sequence[float]],
    text: str = "zebra",
    signals: HistorySignals | None = None,
    others: Sequence[str] = (),
    limit: int = 100,
    defining: Mapping[str, float] | None = None,
) -> list[RankedFile]:
    """Rank files given by path and the scores of their chunks.

    Those that are `defining` have one more chunk each, the third, of that score.
    """
    entries = [FileEntry(n, p, kind_of(p)) for n, p in enumerate([*scores, *others])]
    chunks = [
        ChunkScore(blob, ordinal, score)
        for blob, found in enumerate(scores.values())
        for ordinal, score in enumerate(found)
    ]
    by_blob = {entry.blob_id: entry for entry in entries}
    by_path = {entry.path: entry for entry in entries}
    joined = JoinedHistorySignals({"": signals}) if signals else None
    return rank(
        chunks, by_blob.get, parse_query(text), joined, by_path.get, limit=limit,
        defining=[
            ChunkScore(by_path[path].blob_id, 2, score)
            for path, score in (defining or {}).items()
        ],
    )  # fmt: skip


def order(files: list[RankedFile]) -> list[str]:
    return [file.path for file in files]


def test_rank_of_a_file_sums_its_five_best_chunks_with_halving_weights() -> None:
    [file] = ranked({"a.py": [1, 16, 2, 8, 4, 1, 1]})
    assert file.score == 16 + 4 + 1 + 0.25 + 0.0625
    assert [c.ordinal for c in file.chunks] == [1, 3, 4, 2, 0, 5, 6]
    assert file.reasons._asdict() == {
        "text": file.score, "name": 0, "history": 0, "kind": 1, "cochange": 0,
        "definition": 0, "use": 0,
    }  # fmt: skip


def test_code_of_many_chunks_does_not_bury_a_file_of_the_format() -> None:
    scores = {"zebra.py": [10, 10, 10, 10, 10], "zebra.toml": [9]}
    assert order(ranked(scores, "zebra")) == ["zebra.py", "zebra.toml"]
    assert order(ranked(scores, "zebra in toml")) == ["zebra.toml", "zebra.py"]


@pytest.mark.parametrize(
    ("path", "text", "factor"),
    [
        ("a.py", "zebra", 1.0),
        ("a.toml", "zebra", 0.6),
        ("vendor/a.go", "zebra", 0.5),
        ("examples/a.py", "zebra", 0.5),
        ("tests/a.py", "zebra", 0.3),
        ("docs/a.md", "zebra", 0.25),
        ("tests/a.py", "a zebra in a test", 0.6),
        ("tests/a.py", "the test of a zebra", 1.2),
        ("a.toml", "zebra in toml", 1.5),
        ("docs/a.md", "zebra docs", 0.6),
        ("examples/a.py", "zebra examples", 0.6),
        ("tests/a.py", "zebra docs", 0.3),
        ("a.py", "test zebra", 1.0),
    ],
)
def test_rank_lowers_kinds_of_files_unless_requested(
    path: str, text: str, factor: float
) -> None:
    [file] = ranked({path: [10]}, text)
    assert file.score == pytest.approx(10 * factor)
    assert file.reasons.kind == factor


@pytest.mark.parametrize(
    ("path", "share"),
    [
        ("src/zebra.py", 1),
        ("src/zebra_stripe.py", 0.5),
        ("src/ZebraStripe.java", 0.5),
        ("src/zebra-stripe.tar", 0.5),
        ("zebra/other.py", 0),
        (".zebra", 1),
        ("src/zebra", 1),
        ("_.py", 0),
    ],
)
def test_rank_adds_a_tenth_of_the_best_for_a_requested_name(
    path: str, share: float
) -> None:
    found = {file.path: file for file in ranked({"best.py": [20], path: [10]})}
    assert found[path].reasons.name == pytest.approx(2 * share)


def test_rank_leaves_out_blobs_outside_the_view() -> None:
    chunks = [ChunkScore(1, 0, 5.0), ChunkScore(2, 0, 4.0)]
    entry = FileEntry(2, "a.py", Kind.CODE)
    found = rank(chunks, {2: entry}.get, parse_query("x"))
    assert order(found) == ["a.py"]


def test_rank_is_raised_by_history() -> None:
    signals = HistorySignals(
        history(("zebra stripes", "b.py only.py"), ("else", "a.py")),
        ["a.py", "b.py", "only.py", "tests/c.py"],
    )
    found = ranked({"a.py": [2.0], "b.py": [1.9]}, "zebra", signals, ["only.py"])
    assert order(found) == ["b.py", "a.py", "only.py"]
    assert found[2].chunks == ()
    assert found[2].reasons.history > 0


def test_rank_is_raised_for_companions_of_the_best_files() -> None:
    signals = HistorySignals(
        history(("x", "a.py c.py"), ("x", "a.py new.py")),
        ["a.py", "b.py", "c.py", "new.py"],
    )
    found = ranked(
        {"a.py": [9], "b.py": [2], "c.py": [1.9]}, "zebra", signals, ["new.py"]
    )
    assert order(found) == ["a.py", "c.py", "b.py", "new.py"]
    assert found[1].reasons.cochange == pytest.approx(0.45)
    for file in found:  # each part counts once, also of a file that does not match
        text, name, said, kind, gain, *_ = file.reasons
        assert file.score == pytest.approx((text + name + said) * kind + gain)


@pytest.mark.parametrize(
    ("path", "worth", "expected"),
    [
        ("a.py", 1.0, 5),
        ("a.py", 0.6, 3),
        ("tests/a.py", 1.0, 1.5),
        ("zebra_stripe.py", 1.0, 7.5),
        ("zebrastripe.go", 1.0, 7.5),
        ("ZebraStripe.spec.ts", 1.0, 2.25),
        ("zebra-stripes.js", 1.0, 7.5),
        ("zebra.py", 1.0, 5),
    ],
)
def test_rank_adds_half_of_the_best_to_the_file_that_defines_an_identifier(
    path: str, worth: float, expected: float
) -> None:
    found = ranked(
        {"best.py": [10]}, "ZebraStripe", others=[path], defining={path: worth}
    )
    by_path = {file.path: file for file in found}
    assert by_path[path].score == pytest.approx(expected)
    factor = by_path[path].reasons.kind
    assert by_path[path].reasons.definition == pytest.approx(expected / factor)
    assert by_path["best.py"].reasons.definition == 0
    assert [chunk.ordinal for chunk in by_path[path].chunks] == [2]


def test_rank_puts_the_chunk_with_the_definition_first() -> None:
    found = ranked({"a.py": [9, 8, 1, 7]}, "Zebra", defining={"a.py": 1})
    assert [(c.ordinal, c.score) for c in found[0].chunks] == [
        (2, 9), (0, 9), (1, 8), (3, 7),
    ]  # fmt: skip
    assert found[0].reasons.text == 9 + 4 + 7 / 4 + 1 / 8


def test_rank_of_a_definition_takes_part_in_gains_of_companions() -> None:
    signals = HistorySignals(history(("x", "a.py c.py")), ["a.py", "b.py", "c.py"])
    found = ranked({"b.py": [4]}, "Zebra", signals, ["a.py", "c.py"], 9, {"a.py": 1})
    assert order(found) == ["b.py", "a.py", "c.py"]
    assert found[2].reasons.cochange == pytest.approx(0.2)


def test_rank_orders_equal_scores_by_path() -> None:
    found = ranked({path: [1.5, 1.5] for path in ("b.py", "c.py", "a.py")})
    assert [file.path for file in found] == ["a.py", "b.py", "c.py"]
