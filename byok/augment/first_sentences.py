"""Shorten a description to the sentences at its beginning."""

import re
from collections.abc import Iterator

_READ = 8000  # characters of a description that are looked at
_CUT = "…"
_FENCE = re.compile(r"\s*(?:`{3}|~{3})")
_BLOCK = re.compile(r"\s*<(/?)examples?\b", re.IGNORECASE)
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s+|\Z)")
_UNDERLINE = re.compile(r"\s{0,3}(?:={2,}|-{2,})\s*\Z")  # of a heading, or a rule
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_LABEL = re.compile(
    r"\W{0,4}(?:for example|e\.g\.|examples?|(?:example |sample )?usage)\W{0,4}\Z",
    re.IGNORECASE,
)
# Points with a space behind them, and the marks of scripts without spaces.
_END = re.compile(r"[.!?]+[\"')\]*_`]{0,3}(?=\s|\Z)|[。！？]+[」』）]{0,3}")
_WORD = re.compile(r"\S*\Z")
_NO_END = re.compile(
    r"(?:[a-z]|[a-z]\.[a-z]|etc|vs|cf|approx|incl|resp|max|min|no|fig|\d{1,3})\.",
    re.IGNORECASE,
)
_LEAST = 4  # sentences that fill less than this part of the room say too little


def shorten(text: str, limit: int) -> str:
    """Return the first sentences of a text, at most `limit` characters.

    A text that fits stays as it is. Otherwise headings, examples and all behind the
    first paragraph go. A sentence that does not fit is cut behind a word.
    """
    if len(text) <= limit:
        return text
    found = _first_paragraph(text[:_READ])
    paragraph = " ".join((found or text[:_READ]).split())
    if len(paragraph) <= limit:
        return _without_lead(paragraph)
    ends = [end for end in _ends(paragraph[: limit + 1]) if end <= limit]
    if ends and ends[-1] * _LEAST >= limit:
        return paragraph[: ends[-1]]
    room = limit - len(_CUT)
    words = paragraph[: room + 1].rpartition(" ")[0] or paragraph[:room]
    return words.rstrip(" ,;:-–") + _CUT


def _first_paragraph(text: str) -> str:
    """Return the first paragraph that is no heading and no example, or a heading."""
    lines: list[str] = []
    heading = ""
    for line in _without_blocks(text):
        if _UNDERLINE.match(line):
            heading, lines = heading or " ".join(lines), []
        elif begun := _HEADING.match(line):
            heading = heading or line[begun.end() :].strip(" #")
        elif line.strip() and not (lines and _ITEM.match(line)):
            lines.append(line)
            continue
        if lines:
            break
    return " ".join(lines) or heading


def _without_blocks(text: str) -> Iterator[str]:
    """Give the lines outside of examples; a blank line stands for each of them."""
    fenced = tagged = labelled = False
    for line in text.splitlines():
        tag = _BLOCK.match(line)
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            continue
        elif tag:
            tagged = not tag[1] and "</" not in line
        elif tagged:
            continue
        elif _LABEL.match(line):
            labelled = True
        elif labelled and line.strip():
            continue
        else:
            labelled = False
            yield line
            continue
        yield ""


def _ends(text: str) -> Iterator[int]:
    """Give the offset behind each sentence."""
    for mark in _END.finditer(text):
        end = mark.end()
        rest = text[end : end + 2].lstrip()
        point = mark[0] == "."
        before = _WORD.search(text, max(0, end - 12), end) if point else None
        short = before is not None and _NO_END.fullmatch(before[0].lstrip("(["))
        if not (short or rest[:1].islower()):
            yield end


def _without_lead(paragraph: str) -> str:
    """Drop a last sentence that only announces a list."""
    if not paragraph.endswith(":"):
        return paragraph
    ends = [*_ends(paragraph)]
    return paragraph[: ends[-1]] if ends else paragraph.rstrip(" :")
