"""Split a question that asks several things at once, and join the parts' rankings.

Agents ask such questions. The words of all parts together find files that have a little
of each, and the part with most words crowds out the others. So each part is ranked by
itself, and the best files of all parts get the same score.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from byok.search.index.store.chunk_index import ChunkScore
from byok.search.retrieval.query import without_template
from byok.search.retrieval.rank import RankedFile

_MAX_QUESTION_CHARS = 4_000
_MAX_PARTS = 6
_MIN_QUESTIONS = 2
_WHOLE_WEIGHT = 0.9  # score of the best file for the whole question; 1 for a part
_QUESTION_WORD = r"(?:how|where|what|which|who|why)\b"
_MIN_WORDS = 2
_WORD = re.compile(r"\w{2,}")
_IDEOGRAPHS = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]{3}")
# A part that refers to the part before it: "and where is it defined".
_REFERS_BACK = re.compile(
    r"\A(?:\W*\w+){1,4}\W+(?:it|its|they|them|those|that)\b", re.IGNORECASE
)
_QUESTION_START = re.compile(
    r"\W*(?:(?:how|where|what|which|who|why|when|is|are|do|does|can|could|i|we|please"
    r"|tell|explain|describe|show|find|list|locate|understand|give|look|search|and|also)\b"
    r"|[\u3040-\u9fff\uac00-\ud7af])",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(
    r"\W*(?:(?:i|we)\s+(?:need|want|would like)|please|tell|explain|help)\b"
    r"(?:\W+\w+){0,4}",
    re.IGNORECASE,
)
# `1.`, `2)`, `(c)`, `-` at the start of a line; `1)`, `(2)` within one.
_LIST_MARK = re.compile(
    r"^[ \t]*(?:[-*•+][ \t]+(?!\[[ x]\])|\(?(?:\d{1,2}|[a-h])[.)、:][ \t]*)(?=\S)",
    re.MULTILINE,
)
_INLINE_MARK = re.compile(r"(?:^|(?<=[\s:;,.，；：]))\(?[1-9][.)、](?!\d)[ \t]*(?=\S)")
_SENTENCE_END = re.compile(r"(?<=[?？])\s*|(?<=[.!。！；;])\s+|\n{2,}")
_CLAUSE_BREAK = re.compile(
    r"[,;:]\s*(?=(?:how|where|what|why)\b)"
    rf"|[,;]\s*(?:(?:and|also|then|as well as)\s+)+(?={_QUESTION_WORD})"
    rf"|\s+(?:and|also|plus)\s+(?:also\s+|then\s+)?(?={_QUESTION_WORD})"
    r"|\s*[，；、]\s*(?:以及|还有|和)?(?=\S{0,12}(?:怎么|如何|哪里|哪些|什么|为什么))",
    re.IGNORECASE,
)


def split_parts(text: str) -> list[str]:
    """Return the parts of a question; [] if it asks one thing only."""
    text = without_template(text[:_MAX_QUESTION_CHARS])
    list_items = partial(_split_at_marks, _LIST_MARK)
    inline_items = partial(_split_at_marks, _INLINE_MARK)
    for split in (list_items, inline_items, _split_questions, _split_clauses):
        parts: list[str] = []
        for part in map(str.strip, split(text)):
            if parts and _REFERS_BACK.search(part):
                parts[-1] += f" {part}"
            elif len(_WORD.findall(part)) >= _MIN_WORDS or _IDEOGRAPHS.search(part):
                parts.append(part)
        if len(parts) > 1:
            last = parts[_MAX_PARTS - 1 :]
            return [*parts[: _MAX_PARTS - 1], *([" ".join(last)] if last else [])]
    return []


def join_rankings(
    parts: Sequence[Sequence[RankedFile]], whole: Sequence[RankedFile]
) -> list[RankedFile]:
    """Return the files of all parts, each with its best score relative to its part.

    Files that only the `whole` question finds score a little lower.
    """
    joined: dict[str, RankedFile] = {}
    ranks: dict[str, int] = {}
    for files, weight in (*((files, 1.0) for files in parts), (whole, _WHOLE_WEIGHT)):
        best = max((file.score for file in files), default=0.0) or 1.0
        for rank, file in enumerate(files):
            score = weight * file.score / best
            best_chunk = (file.chunks[0].score if file.chunks else 0.0) or 1.0
            chunks = tuple(
                chunk._replace(score=score * chunk.score / best_chunk)
                for chunk in file.chunks
            )
            known = joined.get(file.path)
            if known is not None:
                chunks = _join_chunks((*known.chunks, *chunks))
            if known is None or score > known.score:
                joined[file.path] = replace(file, score=score, chunks=chunks)
                ranks[file.path] = rank
            else:
                joined[file.path] = replace(known, chunks=chunks)
    # Equal scores by rank, so that many equal files of one part do not come first.
    return sorted(joined.values(), key=lambda file: (-file.score, ranks[file.path]))


def _split_at_marks(mark: re.Pattern[str], text: str) -> list[str]:
    """Return the text behind each mark, up to an empty line or the next mark."""
    starts = [*mark.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return [
        text[match.end() : end].partition("\n\n")[0]
        for match, end in zip(starts, ends, strict=False)
    ]


def _split_questions(text: str) -> list[str]:
    """Return the clauses of the questions in a text; [] if it has fewer than two."""
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence]
    if sum(s.rstrip().endswith(("?", "？")) for s in sentences) < _MIN_QUESTIONS:
        return []
    return [
        clause
        for sentence in sentences
        if sentence.rstrip()[-1] in "?？" or _QUESTION_START.match(sentence)
        for clause in _split_clauses(sentence)
    ]


def _split_clauses(text: str) -> list[str]:
    """Return the clauses of a question without its introduction, or [text]."""
    if not _QUESTION_START.match(text):
        return [text]
    first, *others = _CLAUSE_BREAK.split(text)
    return others if _INTRODUCTION.fullmatch(first) and others else [first, *others]


def _join_chunks(chunks: Iterable[ChunkScore]) -> tuple[ChunkScore, ...]:
    best: dict[int, ChunkScore] = {}
    for chunk in chunks:
        other = best.get(chunk.ordinal)
        if other is None or chunk.score > other.score:
            best[chunk.ordinal] = chunk
    return tuple(sorted(best.values(), key=lambda chunk: (-chunk.score, chunk.ordinal)))
