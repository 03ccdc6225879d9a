"""Sources in an answer: once each, whatever the list looks like."""

from typing import Any

import pytest

from byok.core.events import Citation
from byok.dialects.openai_chat.chunks import SourceList


def test_sources_are_given_once_with_the_first_title() -> None:
    sources = SourceList()
    sources.add({"citations": ["https://a", "https://b"]})
    sources.add({"search_results": [{"url": "https://a", "title": "A"}]})
    sources.add({"annotations": [{"url_citation": {"url": "https://a", "title": "Z"}}]})
    assert [*sources.take()] == [Citation("https://a", "A"), Citation("https://b")]
    assert [*sources.take()] == []


@pytest.mark.parametrize(
    "item",
    [None, 5, "doc 1", {}, {"url": 5}, {"url_citation": "x"}, {"url_citation": None}],
)
def test_sources_without_an_address_are_left_out(item: Any) -> None:
    sources = SourceList()
    sources.add({"citations": [item], "annotations": item})
    assert [*sources.take()] == []
