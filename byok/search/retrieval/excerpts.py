"""Lines of files as they are shown: without secrets, and long ones around what matches.

A line may have thousands of characters: a table of data, a paragraph of prose. An
answer shows 400 of them, and these must have the words that were asked for.
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

# Files as they are now, found by what the index knows of them.
#
# A file that was changed is indexed again after a moment, or after minutes if thousands
# were changed on a busy machine. Until then it is found by its older version, and what
# is shown of it is what it says now. Its older chunks are no guide to that, so its text
# is cut anew, without a parser, and its chunks are chosen by the words of the question.
# A file that has none of these any more is left out.


_NAMED = 3  # files in a note


class CurrentFiles(Struct, eq=False):
    """The lines and chunks of found files, as the files are now; each is read once.

    Where the client named the blobs, these versions are what it asks about.
    """

    contents: Contents
    entries: Mapping[int, Entry]
    scope: Scope
    query: Query
    _lines: dict[int, list[str] | None] = {}
    _spans: dict[int, Sequence[Span]] = {}
    _changed: list[str] = []
    __repr__ = object.__repr__  # it shows nothing of what it holds

    def update(self, files: Sequence[RankedFile], most: int) -> list[RankedFile]:
        """Return files with the chunks that they have now; of the first `most`.

        Those that no longer match are left out. Blocks while it reads.
        """
        found = [self._update(file) for file in files[:most]]
        return [file for file in found if file is not None] + list(files[most:])

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
        names = ", ".join(self._changed[:_NAMED])
        if more := len(self._changed) - _NAMED:
            names += f" and {more} more" if more > 0 else ""
        return [f"Changed since the last indexing, and shown as they are now: {names}."]

    def _update(self, file: RankedFile) -> RankedFile | None:
        entry = self.entries[file.blob_id]
        spaces = [] if self.scope.has_named_blobs else self.scope.spaces_of(entry)
        if not spaces:
            return file
        try:
            content, same = self.contents.current_of(entry, spaces[0].root)
        except Unreadable:
            return file  # the note on its place says that it is gone
        lines = lines_in(content, entry.path)
        if isinstance(lines, SkipReason):
            return None
        self._lines[file.blob_id] = lines
        return file if same else self._cut_anew(file, lines)

    def _cut_anew(self, file: RankedFile, lines: list[str]) -> RankedFile | None:
        spans = cut(lines, (), prose=False)
        chunks = [
            ChunkScore(file.blob_id, place, score)
            for place, span in enumerate(spans)
            if (score := _score(lines[span.first : span.last + 1], self.query.terms))
        ]
        if file.chunks and not chunks:
            return None
        self._spans[file.blob_id] = spans
        self._changed.append(file.path)
        chunks.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
        return replace(file, chunks=tuple(chunks))


# Lines as they are shown; of long ones the parts that match.


_SPOTS = 4  # of one line
_NEAR = 40  # characters between two parts of a line that are shown as one
# Of a longer line only a part is looked at, with enough around it to know a secret.
_PART = 32 * 1024


class MatchSpot(NamedTuple):
    """Where a line matches: a range of characters, the word, and what it is worth."""

    start: int
    end: int
    word: str
    weight: float


FindSpots: TypeAlias = Callable[[str], Iterator[MatchSpot]]


def find_nothing(_: str) -> Iterator[MatchSpot]:
    """Find no spot, where no question was asked."""
    return iter(())


def find_terms(wanted: Mapping[str, float]) -> FindSpots:
    """Return what finds the words of a line that have some of these terms."""

    def find(line: str) -> Iterator[MatchSpot]:
        for start, end, found in expand_words(line):
            for term in found:
                if term in wanted:
                    yield MatchSpot(start, end, term, wanted[term])

    return find


def find_texts(texts: Sequence[str]) -> FindSpots:
    """Return what finds these texts in a line, whatever the case of letters."""
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
    """Return the lines `first` to `last` (inclusive, from 0) as they are shown.

    Of a line of more than 400 characters these are about 400, around what matches; else
    its beginning.
    """
    shown = mask_lines(lines, first, last, path=path)
    return [
        text
        if len(lines[number]) <= MAX_LINE_CHARS or text == MARK
        else _cut_line(lines[number], text, find, path)
        for number, text in enumerate(shown, first)
    ]


def _cut_line(line: str, masked: str, find: FindSpots, path: str) -> str:
    """Cut a long line; `masked` is its beginning without secrets."""
    before = after = 0
    if len(line) > MAX_MASKED_CHARS:
        before, after = _part_with_match(line, find)
        part = line[before : len(line) - after]
        masked = mask(part, path=path, longest=_PART)
    pieces: list[str] = []
    end = -before
    for start, stop in _windows([*find(masked)], len(masked)):
        pieces += _mark_cut(start - end)
        pieces.append(masked[start:stop])
        end = stop
    return " ".join([*pieces, *_mark_cut(len(masked) + after - end)])


def _part_with_match(line: str, find: FindSpots) -> tuple[int, int]:
    """Return how much of a very long line is left out before and after a part of it."""
    if len(line) <= _PART:
        return 0, 0
    best = max(find(line), key=lambda spot: spot.weight, default=None)
    middle = best.start if best else 0
    before = max(0, min(middle - _PART // 2, len(line) - _PART))
    return before, len(line) - _PART - before


def _windows(spots: Sequence[MatchSpot], length: int) -> list[tuple[int, int]]:
    """Return the ranges of a line to show, in order: around each word that it has."""
    chosen: dict[str, MatchSpot] = {}
    for spot in sorted(spots, key=lambda spot: (-spot.weight, spot.start)):
        if len(chosen) < _SPOTS:
            chosen.setdefault(spot.word, spot)
    if not chosen:
        return [(0, min(length, MAX_LINE_CHARS))]
    places = sorted({(spot.start, spot.end) for spot in chosen.values()})
    places = _join(places, MAX_LINE_CHARS // len(places))
    width = MAX_LINE_CHARS // len(places)
    wide: list[tuple[int, int]] = []
    for first, last in places:
        start = max(0, min((first + last - width) // 2, length - width))
        wide.append((min(start, first), max(last, min(length, start + width))))
    return _join(wide, _NEAR)


def _join(ranges: Iterable[tuple[int, int]], near: int) -> list[tuple[int, int]]:
    """Join ranges, given in order, that are less than `near` characters apart."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start - joined[-1][1] < near:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _mark_cut(count: int) -> list[str]:
    """Return what says that characters are left out, nothing for none."""
    return [f"[{count:,} characters cut]"] if count else []


# The lines of a hit that a person is shown: those that match, and what is around.


_AROUND = 1
_CHUNKS, _DESCRIBED = 3, 5  # of a file


def lines_of_hits(
    files: Iterable[RankedFile], current: CurrentFiles, query: Query, most: int
) -> list[list[dict[str, Any]]]:
    """Return lines for each file, from its best chunks; blocks while it reads files.

    A line is `{"number": 1, "text": "...", "match": True}`; there are at most `most` of
    a chunk, long ones cut, in order. Of a file whose text is no longer
    there are none.
    """
    found = []
    for file in files:
        lines, spans = current.lines_of(file.blob_id), current.spans_of(file.blob_id)
        best = [chunk.ordinal for chunk in file.chunks[:_CHUNKS]] or [0]
        shown = [
            line
            for n in sorted(best)
            if lines is not None and n < len(spans)
            for line in lines_of_span(lines, spans[n], file.path, query.terms, most)
        ]
        found.append(shown)
    return found


def glimpse(file: RankedFile, current: CurrentFiles, query: Query) -> Span | None:
    """Return the line of the best chunk that says most; None if it cannot be shown.

    It has words of the question: a line that defines something, else one that is no
    import. Without any it is the first definition from there on.
    """
    lines, spans = current.lines_of(file.blob_id), current.spans_of(file.blob_id)
    ordinal = file.chunks[0].ordinal if file.chunks else 0
    if lines is None or ordinal >= len(spans):
        return None
    first, last, _ = spans[ordinal]
    texts = [line[:MAX_LINE_CHARS] for line in lines[first : first + _FARTHEST]]
    for says in (_defines, _tells):
        worth = {
            n: _score([text], query.terms)
            for n, text in enumerate(texts[: last + 1 - first])
            if says(text)
        }
        best = max(worth, key=worth.__getitem__, default=0)
        if worth.get(best):
            return Span(first + best, first + best, len(texts[best]))
    for says in (_defines, _tells):
        for n, text in enumerate(texts):
            if says(text):
                return Span(first + n, first + n, len(text))
    return Span(first, first, len(texts[0])) if texts else None


def _defines(line: str) -> bool:
    return _DEFINES.match(line) is not None and not IMPORTS.match(line)


def _tells(line: str) -> bool:
    return bool(line.strip()) and not IMPORTS.match(line)


def lines_of_span(
    lines: Sequence[str],
    span: Span,
    path: str,
    wanted: Mapping[str, float],
    most: int,
) -> Iterator[dict[str, Any]]:
    """Yield at most `most` lines of a span, as `lines_of_hits` returns them."""
    find = find_terms(wanted)
    texts = show_lines(lines, span.first, span.last, find, path=path)
    scores = [_score([text], wanted) for text in texts]
    for place in _choose(scores, most):
        yield {
            "number": span.first + place + 1,
            "text": texts[place],
            "match": scores[place] > 0,
        }


def _score(lines: Sequence[str], wanted: Mapping[str, float]) -> float:
    """Return the weights of the words that lines have of those that are wanted."""
    found = {term for line in lines for term in terms(line)}
    return sum(wanted.get(term, 0.0) for term in found)


def _choose(scores: Sequence[float], most: int) -> list[int]:
    """Return which lines are shown: the best ones and their neighbours, in order."""
    matching = [place for place, score in enumerate(scores) if score]
    if not matching:
        return [*range(min(len(scores), most))]
    shown: set[int] = set()
    for place in sorted(matching, key=lambda place: (-scores[place], place)):
        for near in (place, *range(place - _AROUND, place + _AROUND + 1)):
            if len(shown) < most and 0 <= near < len(scores):
                shown.add(near)
    return sorted(shown)


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
            for chunk in file.chunks[:_DESCRIBED]
            if chunk.ordinal < len(spans)
        ],
    }


def describe_terms(query: Query) -> list[dict[str, Any]]:
    """Return the words that are searched for as they were said, each with its weight.

    `whole` is an identifier as a whole.
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


# The class and the function that an excerpt is in the middle of.
#
# No parser is asked: what encloses a line is indented less, in any language that people
# indent, and begins like a definition.


# What only says where names come from.
IMPORTS = re.compile(
    r"\s*(?:(?:import|(?:pub )?use|using|include|require|package|#\s*include)\b"
    r"|from\s+\S+\s+import\b|(?:pub(?:\([^)]*\))? )?mod \w+;)"
    r"|.*(?:\brequire\(|\bfrom\s+['\"])"
)
_MOST = 2  # a class and a function
_FARTHEST = 2_000  # lines that are looked at
_LONGEST = 400  # characters of one
_COMMENTED = 40
# Comments, lines of a preprocessor, labels.
_COMMENT = re.compile(
    r"\s*(?://|/\*|\*|--|;|<!--|\"\"\"|'''|\w+:\s*$|#(?!\w|\[)"
    r"|#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region)\b)"
)
_CLOSES = re.compile(r"\s*(?:[)\]}]|end\b|</|[^\w\s@#&*~$\"'`<]*$)")
_DEFINES = re.compile(
    r"\s*(?:pub\([^)]*\)\s+)?(?:[\w@#&*<>,:.=\[\]]+\s+)*?(?:def|class|fn|fun|func|function|sub|struct|interface"
    r"|enum|trait|impl|type|object|record|module|mod|namespace|protocol|extension|union"
    r"|contract|service|message|defmodule|defp?|macro_rules!)\b\s*[\w({<*&$]"
)
# A function in C and its kin: a type, a name and parameters, and no word of control.
_SIGNATURE = re.compile(
    r"\s*(?!(?:if|else|elif|for|foreach|while|switch|case|do|try|catch|except|with|return"
    r"|match|loop|select|when|unless|until|using|lock|synchronized|await|throw|new|yield"
    r"|assert|expect|go|defer)\b)"
    r"(?:(?:[\w:<>,.&*\[\]?~@]+\s+)*[\w:~&*]+(?:<[^<>]*>)?\s*\([^;]*$"
    r"|.*=>\s*[{(]\s*$)"
)


def find_enclosing(lines: Sequence[str], number: int) -> list[int]:
    """Return the lines of the class and the function around a line, the outer first.

    Lines are counted from 0. A line that begins a definition is not in it.
    """
    depth = _depth_at(lines, number) if number else 0
    found: list[int] = []
    for above in range(number - 1, max(-1, number - _FARTHEST), -1):
        if depth == 0:
            break
        line = lines[above][:_LONGEST]
        if not line or line[:depth].isspace():
            continue
        indent = len(line) - len(line.lstrip())
        if _COMMENT.match(line):
            continue
        if _CLOSES.match(line):  # `) -> X {` ends what begins above, as far out
            depth = min(depth, indent + 1)
            continue
        depth = indent
        if _DEFINES.match(line) or _SIGNATURE.match(line):
            found.append(above)
    return found[:_MOST][::-1]


def _depth_at(lines: Sequence[str], number: int) -> int:
    """Return how far the first line of code from here on is indented.

    A comment belongs to what follows it.
    """
    for line in lines[number : number + _COMMENTED]:
        if line.strip() and not _COMMENT.match(line):
            return len(line) - len(line.lstrip())
    return 0
