"""Choose and cut the lines of files that an answer shows, without secrets.

A line may have thousands of characters: a table of data, a paragraph of prose. An
answer shows 400 of them, around the words of the question.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.redact import MARK
from byok.search.index.contents import Contents, Entry
from byok.search.index.files.reading import Unreadable
from byok.search.index.files.text import lines_in
from byok.search.index.parse.chunking import cut
from byok.search.index.parse.tokens import COMPOUND, expand_words, spell_terms, terms
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import SkipReason, Span
from byok.search.retrieval.masking import MAX_MASKED_CHARS, mask, mask_lines
from byok.search.retrieval.pack import MAX_LINE_CHARS
from byok.search.retrieval.query import Query
from byok.search.retrieval.rank import RankedFile
from byok.search.retrieval.scope import Scope

_MAX_NAMED_FILES = 3  # in a note
_MAX_SPOTS = 4  # of one line
_MAX_JOINED_GAP = 40  # characters between two parts of a line that are joined
# Only a part of a longer line is masked, with enough context to recognize a secret.
_MAX_SEARCHED_CHARS = 32 * 1024
_CONTEXT_LINES = 1
_MAX_CHUNKS_WITH_LINES, _MAX_DESCRIBED_CHUNKS = 3, 5  # of a file
# Lines that only say where names come from.
IMPORTS = re.compile(
    r"\s*(?:(?:import|(?:pub )?use|using|include|require|package|#\s*include)\b"
    r"|from\s+\S+\s+import\b|(?:pub(?:\([^)]*\))? )?mod \w+;)"
    r"|.*(?:\brequire\(|\bfrom\s+['\"])"
)
_MAX_ENCLOSING = 2  # a class and a function
_MAX_DISTANCE = 2_000  # lines to search for the begin of a definition
_MAX_HEADER_CHARS = 400  # of a line that begins a definition
_MAX_COMMENT_LINES = 40  # before the code that they describe
# Comments, preprocessor lines, labels.
_COMMENT = re.compile(
    r"\s*(?://|/\*|\*|--|;|<!--|\"\"\"|'''|\w+:\s*$|#(?!\w|\[)"
    r"|#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region)\b)"
)
_CLOSING_LINE = re.compile(r"\s*(?:[)\]}]|end\b|</|[^\w\s@#&*~$\"'`<]*$)")
_DEFINITION = re.compile(
    r"\s*(?:pub\([^)]*\)\s+)?(?:[\w@#&*<>,:.=\[\]]+\s+)*?(?:def|class|fn|fun|func|function|sub|struct|interface"
    r"|enum|trait|impl|type|object|record|module|mod|namespace|protocol|extension|union"
    r"|contract|service|message|defmodule|defp?|macro_rules!)\b\s*[\w({<*&$]"
)
# A function of C and similar languages: a type, a name and parameters, no control word.
_SIGNATURE = re.compile(
    r"\s*(?!(?:if|else|elif|for|foreach|while|switch|case|do|try|catch|except|with|return"
    r"|match|loop|select|when|unless|until|using|lock|synchronized|await|throw|new|yield"
    r"|assert|expect|go|defer)\b)"
    r"(?:(?:[\w:<>,.&*\[\]?~@]+\s+)*[\w:~&*]+(?:<[^<>]*>)?\s*\([^;]*$"
    r"|.*=>\s*[{(]\s*$)"
)


class CurrentFiles(Struct, eq=False):
    """The current lines and chunks of found files; each file is read once.

    A changed file is indexed again after a moment, or after minutes if thousands were
    changed on a busy machine. Until then it is found by its older version, but answers
    show its current text. The older chunks do not fit that text, so it is chunked again
    without a parser, and its chunks are scored by the words of the question. A file
    without any of these words is left out.

    If the client named the blobs, it asks about these versions, not the current files.
    """

    contents: Contents
    entries: Mapping[int, Entry]
    scope: Scope
    query: Query
    _lines: dict[int, list[str] | None] = {}
    _spans: dict[int, Sequence[Span]] = {}
    _changed: list[str] = []
    __repr__ = object.__repr__  # without code

    def update(self, files: Sequence[RankedFile], count: int) -> list[RankedFile]:
        """Return the files, the first `count` of them with their current chunks.

        Those that no longer match are left out. Blocks while it reads files.
        """
        updated = [self._update_file(file) for file in files[:count]]
        return [file for file in updated if file is not None] + list(files[count:])

    def spans_of(self, blob_id: int) -> Sequence[Span]:
        """Return the chunks of a file, in order."""
        return self._spans.get(blob_id) or self.entries[blob_id].spans

    def lines_of(self, blob_id: int) -> list[str] | None:
        """Return the lines of a file; None if they can no longer be shown."""
        if blob_id not in self._lines:
            self._lines[blob_id] = self.contents.lines_of(self.entries[blob_id])
        return self._lines[blob_id]

    def notes(self) -> list[str]:
        """Return a sentence about files that changed since they were indexed."""
        if not self._changed:
            return []
        names = ", ".join(self._changed[:_MAX_NAMED_FILES])
        if more := len(self._changed) - _MAX_NAMED_FILES:
            names += f" and {more} more" if more > 0 else ""
        return [f"Changed since the last indexing, and shown as they are now: {names}."]

    def _update_file(self, file: RankedFile) -> RankedFile | None:
        entry = self.entries[file.blob_id]
        spaces = [] if self.scope.has_named_blobs else self.scope.spaces_of(entry)
        if not spaces:
            return file
        try:
            content, is_unchanged = self.contents.current_of(entry, spaces[0].root)
        except Unreadable:
            return file  # a note will say that the file cannot be read
        lines = lines_in(content, entry.path)
        if isinstance(lines, SkipReason):
            return None
        self._lines[file.blob_id] = lines
        return file if is_unchanged else self._rechunk(file, lines)

    def _rechunk(self, file: RankedFile, lines: list[str]) -> RankedFile | None:
        spans = cut(lines, (), prose=False)
        chunks = [
            ChunkScore(file.blob_id, ordinal, score)
            for ordinal, span in enumerate(spans)
            if (
                score := _score_lines(
                    lines[span.first : span.last + 1], self.query.terms
                )
            )
        ]
        if file.chunks and not chunks:
            return None
        self._spans[file.blob_id] = spans
        self._changed.append(file.path)
        chunks.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
        return replace(file, chunks=tuple(chunks))


class MatchSpot(NamedTuple):
    """A match in a line: a range of characters, the word, and its weight."""

    start: int
    end: int
    word: str
    weight: float


FindSpots: TypeAlias = Callable[[str], Iterator[MatchSpot]]


def find_nothing(_: str) -> Iterator[MatchSpot]:
    """Find no spots, for text without a question."""
    return iter(())


def find_terms(weights: Mapping[str, float]) -> FindSpots:
    """Return a function that finds the words of a line that have one of the terms."""

    def find(line: str) -> Iterator[MatchSpot]:
        for start, end, terms_of_word in expand_words(line):
            for term in terms_of_word:
                if term in weights:
                    yield MatchSpot(start, end, term, weights[term])

    return find


def find_texts(texts: Sequence[str]) -> FindSpots:
    """Return a function that finds these texts in a line, in upper or lower case."""
    pattern = re.compile("|".join(map(re.escape, texts)) or r"(?!)", re.IGNORECASE)

    def find(line: str) -> Iterator[MatchSpot]:
        for match in pattern.finditer(line):
            yield MatchSpot(*match.span(), match[0].lower(), 1.0)

    return find


def show_lines(
    lines: Sequence[str],
    first: int,
    last: int,
    find: FindSpots = find_nothing,
    *,
    path: str = "",
) -> list[str]:
    """Return the lines `first` to `last` (inclusive, from 0), masked and cut.

    A line of more than 400 characters is cut to about 400, around its matches or at its
    start.
    """
    masked = mask_lines(lines, first, last, path=path)
    return [
        text
        if len(lines[number]) <= MAX_LINE_CHARS or text == MARK
        else _cut_line(lines[number], text, find, path)
        for number, text in enumerate(masked, first)
    ]


def lines_of_hits(
    files: Iterable[RankedFile], current: CurrentFiles, query: Query, max_lines: int
) -> list[list[dict[str, Any]]]:
    """Return lines for each file, from its best chunks; blocks while it reads files.

    A line is `{"number": 1, "text": "...", "match": True}`. There are at most
    `max_lines` lines of a chunk, in order, cut if they are long; [] for a file that can
    no longer be read.
    """
    lines_by_file = []
    for file in files:
        lines, spans = current.lines_of(file.blob_id), current.spans_of(file.blob_id)
        best = [chunk.ordinal for chunk in file.chunks[:_MAX_CHUNKS_WITH_LINES]] or [0]
        lines_of_file = [
            line
            for n in sorted(best)
            if lines is not None and n < len(spans)
            for line in lines_of_span(
                lines, spans[n], file.path, query.terms, max_lines
            )
        ]
        lines_by_file.append(lines_of_file)
    return lines_by_file


def lines_of_span(
    lines: Sequence[str],
    span: Span,
    path: str,
    weights: Mapping[str, float],
    max_lines: int,
) -> Iterator[dict[str, Any]]:
    """Yield at most `max_lines` lines of a span, as `lines_of_hits` returns them."""
    find = find_terms(weights)
    texts = show_lines(lines, span.first, span.last, find, path=path)
    scores = [_score_lines([text], weights) for text in texts]
    for index in _choose_lines(scores, max_lines):
        yield {
            "number": span.first + index + 1,
            "text": texts[index],
            "match": scores[index] > 0,
        }


def glimpse(file: RankedFile, current: CurrentFiles, query: Query) -> Span | None:
    """Return the line of the best chunk that tells most; None if it cannot be shown.

    This is the best match of the question that defines something, else the best match
    that is not an import. Without a match it is the first definition below the start of
    the chunk.
    """
    lines, spans = current.lines_of(file.blob_id), current.spans_of(file.blob_id)
    ordinal = file.chunks[0].ordinal if file.chunks else 0
    if lines is None or ordinal >= len(spans):
        return None
    first, last, _ = spans[ordinal]
    texts = [line[:MAX_LINE_CHARS] for line in lines[first : first + _MAX_DISTANCE]]
    for is_wanted in (_is_definition, _is_telling):
        scores = {
            n: _score_lines([text], query.terms)
            for n, text in enumerate(texts[: last + 1 - first])
            if is_wanted(text)
        }
        best = max(scores, key=scores.__getitem__, default=0)
        if scores.get(best):
            return Span(first + best, first + best, len(texts[best]))
    for is_wanted in (_is_definition, _is_telling):
        for n, text in enumerate(texts):
            if is_wanted(text):
                return Span(first + n, first + n, len(text))
    return Span(first, first, len(texts[0])) if texts else None


def find_enclosing(lines: Sequence[str], number: int) -> list[int]:
    """Return the numbers of the lines that begin the class and function around a line.

    The outer one comes first; lines are counted from 0. A line that begins a definition
    is not inside it. No parser is used: in any language that people indent, the
    enclosing line is indented less, and begins like a definition.
    """
    indent_limit = _indent_at(lines, number) if number else 0
    enclosing: list[int] = []
    for line_number in range(number - 1, max(-1, number - _MAX_DISTANCE), -1):
        if indent_limit == 0:
            break
        line = lines[line_number][:_MAX_HEADER_CHARS]
        if not line or line[:indent_limit].isspace():
            continue
        indent = len(line) - len(line.lstrip())
        if _COMMENT.match(line):
            continue
        if _CLOSING_LINE.match(line):  # `) -> X {`: its definition begins above
            indent_limit = min(indent_limit, indent + 1)
            continue
        indent_limit = indent
        if _DEFINITION.match(line) or _SIGNATURE.match(line):
            enclosing.append(line_number)
    return enclosing[:_MAX_ENCLOSING][::-1]


def describe_rank(file: RankedFile, spans: Sequence[Span]) -> dict[str, Any]:
    """Return the score of a file, its parts, and the best chunks."""
    parts = file.reasons._asdict()
    if file.vector:  # only where vectors were used
        parts["vector"] = file.vector
    return {
        "score": round(file.score, 3),
        "kind": file.kind,
        "reasons": {name: round(part, 3) for name, part in parts.items()},
        **({"moved_from": file.place} if file.place else {}),
        "chunks": [
            {
                "first_line": spans[chunk.ordinal].first + 1,
                "last_line": spans[chunk.ordinal].last + 1,
                "score": round(chunk.score, 3),
            }
            for chunk in file.chunks[:_MAX_DESCRIBED_CHUNKS]
            if chunk.ordinal < len(spans)
        ],
    }


def describe_terms(query: Query) -> list[dict[str, Any]]:
    """Return the terms of a query as the question spells them, each with its weight.

    `whole` says that the term is a whole identifier.
    """
    spelled = spell_terms(query.words)
    return [
        {
            "term": spelled.get(term, term.removeprefix(COMPOUND)),
            "whole": term.startswith(COMPOUND),
            "weight": round(weight, 3),
        }
        for term, weight in query.terms.items()
    ]


def _cut_line(line: str, masked: str, find: FindSpots, path: str) -> str:
    """Cut a long line; `masked` is its start with secrets masked."""
    chars_before = chars_after = 0
    if len(line) > MAX_MASKED_CHARS:
        chars_before, chars_after = _margins_around_match(line, find)
        part = line[chars_before : len(line) - chars_after]
        masked = mask(part, path=path, longest=_MAX_SEARCHED_CHARS)
    pieces: list[str] = []
    end = -chars_before
    for start, stop in _choose_windows([*find(masked)], len(masked)):
        pieces += _cut_marks(start - end)
        pieces.append(masked[start:stop])
        end = stop
    return " ".join([*pieces, *_cut_marks(len(masked) + chars_after - end)])


def _margins_around_match(line: str, find: FindSpots) -> tuple[int, int]:
    """Return how many characters of a very long line are left out before and after."""
    if len(line) <= _MAX_SEARCHED_CHARS:
        return 0, 0
    best = max(find(line), key=lambda spot: spot.weight, default=None)
    middle = best.start if best else 0
    chars_before = max(
        0, min(middle - _MAX_SEARCHED_CHARS // 2, len(line) - _MAX_SEARCHED_CHARS)
    )
    return chars_before, len(line) - _MAX_SEARCHED_CHARS - chars_before


def _choose_windows(spots: Sequence[MatchSpot], length: int) -> list[tuple[int, int]]:
    """Return the ranges of a line to show, in order: around its best matches."""
    best: dict[str, MatchSpot] = {}
    for spot in sorted(spots, key=lambda spot: (-spot.weight, spot.start)):
        if len(best) < _MAX_SPOTS:
            best.setdefault(spot.word, spot)
    if not best:
        return [(0, min(length, MAX_LINE_CHARS))]
    ranges = sorted({(spot.start, spot.end) for spot in best.values()})
    ranges = _join_ranges(ranges, MAX_LINE_CHARS // len(ranges))
    width = MAX_LINE_CHARS // len(ranges)
    windows: list[tuple[int, int]] = []
    for first, last in ranges:
        start = max(0, min((first + last - width) // 2, length - width))
        windows.append((min(start, first), max(last, min(length, start + width))))
    return _join_ranges(windows, _MAX_JOINED_GAP)


def _join_ranges(ranges: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Join ranges, which are in order, that are less than `gap` characters apart."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start - joined[-1][1] < gap:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _cut_marks(count: int) -> list[str]:
    """Return a mark for `count` characters that are left out; [] for none."""
    return [f"[{count:,} characters cut]"] if count else []


def _is_definition(line: str) -> bool:
    return _DEFINITION.match(line) is not None and not IMPORTS.match(line)


def _is_telling(line: str) -> bool:
    return bool(line.strip()) and not IMPORTS.match(line)


def _score_lines(lines: Sequence[str], weights: Mapping[str, float]) -> float:
    """Return the sum of the weights of the terms in some lines."""
    terms_in_lines = {term for line in lines for term in terms(line)}
    return sum(weights.get(term, 0.0) for term in terms_in_lines)


def _choose_lines(scores: Sequence[float], max_lines: int) -> list[int]:
    """Return the indexes of the best lines and their neighbours, in order."""
    matching = [index for index, score in enumerate(scores) if score]
    if not matching:
        return [*range(min(len(scores), max_lines))]
    chosen: set[int] = set()
    for index in sorted(matching, key=lambda index: (-scores[index], index)):
        for neighbour in (
            index,
            *range(index - _CONTEXT_LINES, index + _CONTEXT_LINES + 1),
        ):
            if len(chosen) < max_lines and 0 <= neighbour < len(scores):
                chosen.add(neighbour)
    return sorted(chosen)


def _indent_at(lines: Sequence[str], number: int) -> int:
    """Return the indentation of a line of code, or of the code below a comment."""
    for line in lines[number : number + _MAX_COMMENT_LINES]:
        if line.strip() and not _COMMENT.match(line):
            return len(line) - len(line.lstrip())
    return 0
