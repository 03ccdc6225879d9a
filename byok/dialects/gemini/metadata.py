"""What Gemini tells about an answer: token counts, and the pages it rests on."""

from collections.abc import Iterator
from typing import Any

from byok.chat import Json
from byok.events import Usage


def read_usage(usage: Any) -> Usage | None:
    """Decode usageMetadata; None where it has no counts.

    `promptTokenCount` includes the cached tokens, but not those that Google's tools
    read; `candidatesTokenCount` does not include the thoughts (API reference).
    """
    if not isinstance(usage, dict):
        return None
    thoughts = _count(usage, "thoughtsTokenCount")
    prompt = _count(usage, "promptTokenCount")
    read = Usage(
        prompt + _count(usage, "toolUsePromptTokenCount"),
        _count(usage, "candidatesTokenCount") + thoughts,
        _count(usage, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
        cache_told=True,  # it leaves out a count of 0
    )
    return read if read.input_tokens or read.output_tokens else None


def read_sources(candidate: Json, sources: dict[str, str]) -> None:
    """Add the pages that a candidate names to `sources`: titles by address."""
    for page in (
        *_grounding(candidate),
        *_citations(candidate),
        *_url_pages(candidate),
    ):
        url = page.get("uri") or page.get("retrievedUrl")
        title = page.get("title")
        if isinstance(url, str) and url:
            sources[url] = title if isinstance(title, str) else sources.get(url, "")


def _grounding(candidate: Json) -> Iterator[Json]:
    """Yield the pages of a search, of a file store or of a map."""
    for chunk in _rows(candidate.get("groundingMetadata"), "groundingChunks"):
        for kind in ("web", "retrievedContext", "maps"):
            if isinstance(page := chunk.get(kind), dict):
                yield page


def _citations(candidate: Json) -> Iterator[Json]:
    metadata = candidate.get("citationMetadata")
    for name in ("citationSources", "citations"):  # of the Gemini API, of Vertex AI
        yield from _rows(metadata, name)


def _url_pages(candidate: Json) -> Iterator[Json]:
    yield from _rows(candidate.get("urlContextMetadata"), "urlMetadata")


def _rows(value: Any, name: str) -> Iterator[Json]:
    rows = value.get(name) if isinstance(value, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            yield row


def _count(usage: Json, name: str) -> int:
    value = usage.get(name)
    return value if type(value) is int and value > 0 else 0
