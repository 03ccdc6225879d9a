"""Token counts and sources of Gemini's answers."""

from typing import Any

import pytest

from byok.core.events import Usage
from byok.dialects.gemini.answer import read_sources, read_usage


@pytest.mark.parametrize(
    ("metadata", "usage"),
    [
        ({"promptTokenCount": 5, "candidatesTokenCount": 3}, Usage(5, 3)),
        (
            {
                "promptTokenCount": 15,
                "toolUsePromptTokenCount": 70,
                "candidatesTokenCount": 3,
                "thoughtsTokenCount": 40,
                "cachedContentTokenCount": 9,
            },
            Usage(85, 43, 9, 0, 40),
        ),
        ({"totalTokenCount": 7}, None),
        ({"promptTokenCount": "7", "candidatesTokenCount": -1}, None),
        ({}, None),
        (None, None),
    ],
)
def test_gemini_usage_counts_thoughts_and_what_tools_read(
    metadata: Any, usage: Usage | None
) -> None:
    assert read_usage(metadata) == usage


def test_gemini_sources_come_from_searches_files_maps_citations_and_urls() -> None:
    found: dict[str, str] = {}
    candidate = {
        "groundingMetadata": {
            "groundingChunks": [
                {"web": {"uri": "u1", "title": "One"}},
                {"retrievedContext": {"uri": "u2", "text": "..."}},
                {"maps": {"uri": "u3", "title": 3}},
                {"web": {"title": "no address"}},
                {"web": None},
                7,
            ]
        },
        "citationMetadata": {"citationSources": [{"uri": "u4"}, {"uri": "u1"}]},
        "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "u5"}]},
    }
    read_sources(candidate, found)
    assert found == {"u1": "One", "u2": "", "u3": "", "u4": "", "u5": ""}
    read_sources({"groundingMetadata": 7, "citationMetadata": {"citations": 7}}, found)
    assert len(found) == 5
