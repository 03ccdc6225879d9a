"""Lines with words become ranked files, and these become chunks to pack."""

import pytest

from byok.search.index.types import Kind, Span
from byok.search.retrieval.rank import RankedFile
from byok.search.retrieval.ripgrep import (
    LINES_A_FILE,
    MatchCollector,
    rank_by_rarity,
    to_ranked,
)


def found_in(**words: str) -> MatchCollector:
    """Make what was found: for each word the paths that have it, again for more."""
    found = MatchCollector(searched=100)
    for word, paths in words.items():
        for number, path in enumerate(paths.split()):
            found.add(word, path, number, f"{word} here")
    return found


def order(found: MatchCollector, names: frozenset[Kind] = frozenset()) -> list[str]:
    return [file.path for file in rank_by_rarity(found, names)]


def test_matches_of_a_rare_word_count_more() -> None:
    found = found_in(rare="b.py", common="a.py c.py d.py e.py f.py")
    assert order(found) == ["b.py", "a.py", "c.py", "d.py", "e.py", "f.py"]


def test_matches_of_more_words_and_lines_count_more() -> None:
    found = found_in(one="a.py b.py b.py c.py", two="c.py")
    assert order(found) == ["c.py", "b.py", "a.py"]


def test_a_whole_word_counts_more_than_a_part_of_one() -> None:
    found = MatchCollector(searched=100)
    for number in range(10):
        found.add("handler_77", "mod770.py", number, f"def handler_77{number}():")
    found.add("handler_77", "mod77.py", 0, "def Handler_77():")
    assert order(found) == ["mod77.py", "mod770.py"]


def test_matches_of_a_word_seen_in_part_count_as_common() -> None:
    found = found_in(the="a.py", zebra="b.py c.py")
    assert order(found)[0] == "a.py"
    found.common.add("the")
    assert order(found) == ["b.py", "c.py", "a.py"]


def test_matches_weigh_kinds_of_files_like_the_index() -> None:
    found = found_in(zebra="tests/a.py docs/a.md z.py")
    assert order(found) == ["z.py", "tests/a.py", "docs/a.md"]
    lifted = rank_by_rarity(found, frozenset({Kind.DOC}))
    assert [file.path for file in lifted] == ["z.py", "docs/a.md", "tests/a.py"]


def test_matches_have_ordered_truncated_and_few_lines() -> None:
    found = MatchCollector()
    for number in reversed(range(LINES_A_FILE + 9)):
        found.add("x", "a.py", number, "x" * 9000)
    [file] = rank_by_rarity(found)
    assert len(file.lines) == LINES_A_FILE
    assert [line.number for line in file.lines] == list(range(9, LINES_A_FILE + 9))
    assert {len(line.text) for line in file.lines} == {400}


def test_matches_of_nothing_rank_nothing() -> None:
    assert rank_by_rarity(MatchCollector()) == ()
    assert to_ranked([]) == ([], {})


@pytest.mark.parametrize(
    ("numbers", "spans"),
    [
        ([0], [(0, 2)]),
        ([10, 12, 15], [(8, 17)]),
        ([10, 16], [(8, 12), (14, 18)]),
        (list(range(40)), [(0, 29), (26, 41)]),
    ],
)
def test_matches_near_each_other_are_one_chunk(
    numbers: list[int], spans: list[tuple[int, int]]
) -> None:
    found = MatchCollector()
    for number in numbers:
        found.add("x", "a.py", number, "text")
    _, of = to_ranked(rank_by_rarity(found))
    assert [(span.first, span.last) for span in of[0]] == spans


def test_matches_make_the_chunk_with_most_lines_the_best() -> None:
    found = MatchCollector()
    for number in (3, 50, 51, 52):
        found.add("x", "a.py", number, "x")
    ranked, spans = to_ranked(rank_by_rarity(found), prefix="root/")
    [file] = ranked
    assert isinstance(file, RankedFile)
    assert (file.path, file.blob_id) == ("root/a.py", 0)
    assert [(chunk.ordinal, chunk.score) for chunk in file.chunks] == [(1, 3), (0, 1)]
    assert spans[0][1] == Span(48, 54, 3 * 161)
