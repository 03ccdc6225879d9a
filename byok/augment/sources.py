"""The list of sources under an answer, as lines of byok's own."""

from collections.abc import Iterator, Mapping

_MOST = 40
_LONGEST = 200  # characters of a title


def source_lines(sources: Mapping[str, str]) -> Iterator[str]:
    """Write a heading and one numbered line for each source; nothing without one.

    `sources` maps addresses to titles, which may be empty.
    """
    found = [(" ".join(url.split()), title) for url, title in sources.items()]
    found = [(url, title) for url, title in found if url]
    if found:
        yield "Sources:"
    for number, (url, title) in enumerate(found[:_MOST], 1):
        words = " ".join(title.split())[:_LONGEST]
        yield f"{number}. {words} {url}" if words else f"{number}. {url}"
    if len(found) > _MOST:
        yield f"and {len(found) - _MOST} more."
