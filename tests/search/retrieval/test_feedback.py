"""The pieces that match best say what else the right code says."""

from pathlib import Path

import pytest

from byok.core.code_query import BlobNames
from byok.search.retrieval.feedback import words_beside
from byok.search.retrieval.query import parse_query
from byok.search.retrieval.ranker import Ranker
from byok.search.retrieval.scope import select_scope
from tests.fakes.engines import indexed, project

SHARES = {"purg": 0.001, "stale": 0.02, "return": 0.6, "lion": 0.01, "unseen": 0.0}


def beside(question: str, *lines: str) -> dict[str, float]:
    pieces = [(2.0, [line]) for line in lines]
    return words_beside(parse_query(question), pieces, lambda term: SHARES.get(term, 1))


def test_rare_words_of_the_best_pieces_weigh_a_tenth_of_those_of_the_question() -> None:
    found = beside("the old lion", "return purge lion stale", "return purge unseen")
    assert list(found) == ["purg", "stale"]
    assert found["purg"] == pytest.approx(0.1)


def test_of_words_that_say_as_much_the_first_are_taken() -> None:
    words = [f"{one}{two}zz" for one in "abcdef" for two in "abcdef"]
    found = words_beside(parse_query("lion"), [(2.0, words)], lambda _: 0.001)
    assert len(found) < len(words)
    assert list(found) == words[: len(found)]


@pytest.mark.parametrize("lines", [(), ("",), ("return lion unseen",)])
def test_nothing_is_beside_where_no_rare_word_is(lines: tuple[str, ...]) -> None:
    assert beside("the old lion", *lines) == {}


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
