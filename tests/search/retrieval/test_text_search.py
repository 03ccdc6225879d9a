"""Answers while another process has the index open."""

import shutil
from pathlib import Path

import pytest

from byok.core.code_query import DEFAULT_LENGTH
from byok.search.index.files.roots import rules_of
from byok.search.index.types import IndexOptions
from byok.search.retrieval.ripgrep import UNAVAILABLE, Ripgrep, TextSearch
from tests.fakes.engines import project

RG = shutil.which("rg")


def search(program: str | None) -> TextSearch:
    return TextSearch(
        Ripgrep(lambda: program), lambda root: rules_of(root, IndexOptions())
    )


@pytest.mark.skipif(RG is None, reason="rg is not installed")
async def test_folders_are_searched_by_their_rules(tmp_path: Path) -> None:
    roots = [
        project(
            tmp_path / name,
            a__py=f"def feed_{name}(): pass\n",
            **{".env": "feed=1\n", ".augmentignore": "b.py\n"},
            b__py="feed = 2\n",
        )
        for name in ("lion", "tiger")
    ]
    both = await search(RG).answer("feed", roots)
    assert "Path: lion/a.py" in both
    assert "Path: tiger/a.py" in both
    assert "b.py" not in both
    assert ".env" not in both
    one = await search(RG).answer("feed", roots[:1])
    assert "Path: a.py\n     1\tdef feed_lion" in one
    assert "Another byok process has the index open" in one


async def test_text_search_answer_fits_and_says_what_is_missing(
    tmp_path: Path,
) -> None:
    roots = [project(tmp_path / str(n), a__py="x\n") for n in range(9)]
    text = await search(None).answer("feed", roots)
    assert UNAVAILABLE in text
    assert len(text) <= DEFAULT_LENGTH
