"""The lines of a hit that people are shown."""

from pathlib import Path

from byok.core.code_query import BlobNames
from byok.search.retrieval.current_files import CurrentFiles
from byok.search.retrieval.excerpts import describe_terms, lines_of_hits
from byok.search.retrieval.model_aids import ModelAids
from byok.search.retrieval.query import parse_query
from byok.search.retrieval.ranker import Ranker
from byok.search.retrieval.retriever import Retriever
from byok.search.retrieval.ripgrep import Ripgrep
from byok.search.retrieval.scope import select_scope
from tests.fakes.engines import complete, engine, written

KEY = "sk-proj-Zk39fjQ0a8Zr1LmN7pQ2sT5uV8wX0yZ3"


async def lines_of(tmp_path: Path, text: str, question: str, most: int = 12) -> object:
    """Return the lines shown of the only file, found by a question."""
    root = written(tmp_path / "project", {"a.py": text})
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        retriever = Retriever(made, Ripgrep(lambda: None), aids=ModelAids)
        found = await retriever.search(question, 1, [str(root)], lines=most)
        without = await retriever.search(question, 1, [str(root)])
    assert "lines" not in without["hits"][0]
    assert "terms" not in without
    return [
        (line["number"], line["text"], line["match"])
        for line in found["hits"][0]["lines"]
    ]


async def test_lines_that_match_come_with_the_lines_around(tmp_path: Path) -> None:
    text = "a = 1\nb = 2\nclass TokenCheck:\n    c = 3\n    d = 4\n"
    assert await lines_of(tmp_path, text, "where are tokens checked") == [
        (2, "b = 2", False),
        (3, "class TokenCheck:", True),
        (4, "    c = 3", False),
    ]


async def test_there_are_no_more_lines_than_wanted_and_none_is_endless(
    tmp_path: Path,
) -> None:
    text = "".join(f"token_{n} = '{'x' * 600}'\n" for n in range(3))
    shown = await lines_of(tmp_path, text, "token", 2)
    assert isinstance(shown, list)
    assert len(shown) == 2
    assert all(text.startswith("token_") and len(text) < 450 for _, text, _ in shown)


async def test_the_lines_that_say_most_come_before_those_that_say_little(
    tmp_path: Path,
) -> None:
    some = "".join(f"token_{n} = {n}\n" for n in range(9))
    text = f"{some}\n\ndef check_token(token):\n    return token\n"
    shown = await lines_of(tmp_path, text, "check token", 3)
    assert isinstance(shown, list)
    assert (12, "def check_token(token):", True) in shown
    assert [number for number, _, _ in shown] == sorted(n for n, _, _ in shown)


async def test_lines_hide_keys(tmp_path: Path) -> None:
    shown = await lines_of(tmp_path, f'token_key = "{KEY}"\n', "token key")
    assert KEY not in str(shown)
    assert "token_key" in str(shown)


async def test_a_file_that_is_gone_has_no_lines(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"a.py": "def find_token():\n    pass\n"})
    query = parse_query("token")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        scope = await select_scope(made, BlobNames(), [str(root)])
        files, entries = Ranker(made).rank_by_words(query, scope)
        found = CurrentFiles(made.contents, entries, scope, query)
        there = lines_of_hits(files, found, query, 9)
        root.rename(tmp_path / "moved")
        found = CurrentFiles(made.contents, entries, scope, query)
        gone = lines_of_hits(files, found, query, 9)
    assert (len(there[0]), gone) == (2, [[]])


def test_terms_are_words_with_weights_and_whole_names() -> None:
    described = describe_terms(parse_query("where is TokenCheck"))
    assert described == [
        {"term": "token", "whole": False, "weight": 1.0},
        {"term": "check", "whole": False, "weight": 1.0},
        {"term": "tokencheck", "whole": True, "weight": 1.0},
    ]
