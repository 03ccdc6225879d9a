"""Questions that ask several things at once, as agents do; each is answered by itself.

The words of all of them together find files that have a little of each, and what has
most words crowds out the rest. So each part is ranked alone, and the best files of each
are as good as those of any other.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from byok.search.index.store.chunk_index import ChunkScore
from byok.search.retrieval.query import without_template
from byok.search.retrieval.rank import RankedFile

_LONGEST = 4_000  # characters of a question that is looked at
_MOST = 6  # parts
_FEWEST_QUESTIONS = 2
_WHOLE = 0.9  # what the best file of the whole question counts
_ASKS = r"(?:how|where|what|which|who|why)\b"
_FEWEST_WORDS = 2
_WORD = re.compile(r"\w{2,}")
_IDEOGRAPHS = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]{3}")
# A part about what was said before: "and where is it defined".
_REFERS = re.compile(
    r"\A(?:\W*\w+){1,4}\W+(?:it|its|they|them|those|that)\b", re.IGNORECASE
)

_ASKING = re.compile(
    r"\W*(?:(?:how|where|what|which|who|why|when|is|are|do|does|can|could|i|we|please"
    r"|tell|explain|describe|show|find|list|locate|understand|give|look|search|and|also)\b"
    r"|[\u3040-\u9fff\uac00-\ud7af])",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"\W*(?:(?:i|we)\s+(?:need|want|would like)|please|tell|explain|help)\b"
    r"(?:\W+\w+){0,4}",
    re.IGNORECASE,
)
# `1.`, `2)`, `(c)`, `-` at the start of a line; `1)`, `(2)` within one.
_ITEM = re.compile(
    r"^[ \t]*(?:[-*•+][ \t]+(?!\[[ x]\])|\(?(?:\d{1,2}|[a-h])[.)、:][ \t]*)(?=\S)",
    re.MULTILINE,
)
_INLINE = re.compile(r"(?:^|(?<=[\s:;,.，；：]))\(?[1-9][.)、](?!\d)[ \t]*(?=\S)")
_SENTENCE = re.compile(r"(?<=[?？])\s*|(?<=[.!。！；;])\s+|\n{2,}")
_CLAUSE = re.compile(
    r"[,;:]\s*(?=(?:how|where|what|why)\b)"
    rf"|[,;]\s*(?:(?:and|also|then|as well as)\s+)+(?={_ASKS})"
    rf"|\s+(?:and|also|plus)\s+(?:also\s+|then\s+)?(?={_ASKS})"
    r"|\s*[，；、]\s*(?:以及|还有|和)?(?=\S{0,12}(?:怎么|如何|哪里|哪些|什么|为什么))",
    re.IGNORECASE,
)


def split_parts(text: str) -> list[str]:
    """Return what a question asks, part by part; nothing if it asks one thing."""
    text = without_template(text[:_LONGEST])
    items, inline_items = partial(_behind, _ITEM), partial(_behind, _INLINE)
    for split in (items, inline_items, _sentences, _clauses):
        parts: list[str] = []
        for part in map(str.strip, split(text)):
            if parts and _REFERS.search(part):
                parts[-1] += f" {part}"
            elif _says_much(part):
                parts.append(part)
        if len(parts) > 1:
            last = parts[_MOST - 1 :]
            return [*parts[: _MOST - 1], *([" ".join(last)] if last else [])]
    return []


def _says_much(part: str) -> bool:
    enough = len(_WORD.findall(part)) >= _FEWEST_WORDS
    return enough or _IDEOGRAPHS.search(part) is not None


def _behind(mark: re.Pattern[str], text: str) -> list[str]:
    """Return what is behind each mark, up to an empty line or the next one."""
    starts = [*mark.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return [
        text[match.end() : end].partition("\n\n")[0]
        for match, end in zip(starts, ends, strict=False)
    ]


def _sentences(text: str) -> list[str]:
    """Return the questions of a text that has at least two."""
    found = [one for one in _SENTENCE.split(text) if one]
    if sum(one.rstrip().endswith(("?", "？")) for one in found) < _FEWEST_QUESTIONS:
        return []
    asked = [one for one in found if one.rstrip()[-1] in "?？" or _ASKING.match(one)]
    return [part for one in asked for part in _clauses(one)]


def _clauses(text: str) -> list[str]:
    """Return the clauses of a question that ask; of a statement none."""
    if not _ASKING.match(text):
        return [text]
    first, *others = _CLAUSE.split(text)
    return others if _INTRODUCES.fullmatch(first) and others else [first, *others]


def join_rankings(
    parts: Sequence[Sequence[RankedFile]], whole: Sequence[RankedFile]
) -> list[RankedFile]:
    """Return the files of all parts, each by its best score relative to its part.

    What the `whole` question finds counts a little less.
    """
    joined: dict[str, RankedFile] = {}
    places: dict[str, int] = {}
    for files, weight in (*((files, 1.0) for files in parts), (whole, _WHOLE)):
        best = max((file.score for file in files), default=0.0) or 1.0
        for place, file in enumerate(files):
            score = weight * file.score / best
            chunks = _scaled(file.chunks, score)
            known = joined.get(file.path)
            if known is not None:
                chunks = _joined((*known.chunks, *chunks))
            if known is None or score > known.score:
                joined[file.path] = replace(file, score=score, chunks=chunks)
                places[file.path] = place
            else:
                joined[file.path] = replace(known, chunks=chunks)
    # Of very many equally good ones of one part, others are before all but the first.
    return sorted(joined.values(), key=lambda file: (-file.score, places[file.path]))


def _scaled(chunks: Sequence[ChunkScore], score: float) -> tuple[ChunkScore, ...]:
    best = chunks[0].score if chunks else 1.0
    return tuple(
        one._replace(score=score * one.score / (best or 1.0)) for one in chunks
    )


def _joined(chunks: Iterable[ChunkScore]) -> tuple[ChunkScore, ...]:
    best: dict[int, ChunkScore] = {}
    for chunk in chunks:
        known = best.get(chunk.ordinal)
        if known is None or chunk.score > known.score:
            best[chunk.ordinal] = chunk
    return tuple(sorted(best.values(), key=lambda chunk: (-chunk.score, chunk.ordinal)))
