"""What an answer shows of a name: its definition, and the lines of files that use it.

The index knows the chunks that define a name, and those that call it, use it as a type,
or extend it (`index/parse/references.py`). Their text shows which lines do.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import NamedTuple

from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Span
from byok.search.retrieval.excerpts import IMPORTS, CurrentFiles, find_enclosing
from byok.search.retrieval.names import NameMatch
from byok.search.retrieval.pack import (
    GAP_LINE,
    MAX_LINE_CHARS,
    NUMBER_WIDTH,
    PATH_LINE,
    PackedAnswer,
    PackedFile,
    Section,
    merge_spans,
    pack,
)
from byok.search.retrieval.rank import RankedFile

MAX_NAME_FILES = 24  # that are shown
_MOST_PLACES = 8  # of one file
_MOST_DEFINITIONS = 3  # before what uses the name
_SHORT_LINE = 20  # characters, with its number
# Lines around a use: as many as there is room for.
_CONTEXTS = (12, 5, 2, 1, 0)
# Of the limit: definitions at most, uses with these; of what is left, other files.
_DEFINITION_SHARE, _SHARE, _OTHERS_SHARE = 0.35, 0.9, 0.5
_DEFINES = (
    r"\b(?:def|class|fn|func|function|struct|interface|enum|trait|type|object|record"
    r"|mod)"
)
_COMMENT = re.compile(r"\s*(?://|/\*|\*|--|;|%|#(?!\w|\[))")
_HEADER = re.compile(
    r"\b(?:class|struct|interface|impl|trait|extends|implements|object|record|enum|type"
    r"|extension|protocol|include|extend|prepend|use|with)\b|:"
)


class _File(NamedTuple):
    """What a file has of a name: whole definitions, and lines that use it."""

    file: RankedFile
    lines: Sequence[str]
    definitions: tuple[Span, ...]
    uses: tuple[tuple[int, Span], ...]  # each with the chunk that it is in
    begins: bool  # a use is where a class begins: what follows says more

    def show(self, context: int) -> PackedFile:
        """Return its sections, with so many lines around each use."""
        before = 0 if self.begins else context
        end = len(self.lines) - 1
        around = [
            Section(
                max(span.first, line - before),
                min(end if self.begins else span.last, line + 2 * context - before),
            )
            for line, span in self.uses
        ]
        if not context:  # a line by itself
            inside = (find_enclosing(self.lines, line)[-1:] for line, _ in self.uses)
            around += [Section(n, n) for found in inside for n in found]
        sections = merge_spans([*self.definitions, *around])
        return PackedFile(self.file.blob_id, self.file.path, sections)


def pack_uses(
    found: NameMatch,
    ranked: Sequence[RankedFile],
    current: CurrentFiles,
    limit: int,
    glimpse: Callable[[RankedFile], Span | None],
    parts: int = 1,
) -> PackedAnswer:
    """Choose what an answer shows of a name: its definition, then each file's uses.

    Files that define it come first, else they keep their order. There are as many lines
    around each use as all of them have room for. Behind them is what other files have:
    less than that if only one of several `parts` of the question is about the name.
    """
    files = [*_files_with(found, ranked, current, limit // parts)]
    shown, cost = _show(files, limit * _SHARE / parts)
    known = {file.blob_id for file in shown}
    rest = [file for file in ranked if file.blob_id not in known]
    share = _OTHERS_SHARE if parts == 1 else 1.0
    other = pack(rest, current.spans_of, int((limit - cost) * share), glimpse)
    return PackedAnswer((*shown, *other.files), other.others)


def _show(files: Sequence[_File], room: float) -> tuple[list[PackedFile], int]:
    """Return what is shown of the files that there is room for, and what it costs."""
    shown: list[PackedFile] = []
    totals: list[int] = []
    for context in _CONTEXTS:
        shown = [file.show(context) for file in files]
        lines = sum(last - first + 1 for one in shown for first, last in one.sections)
        if context and lines * _SHORT_LINE > room:
            continue
        pairs = zip(shown, files, strict=True)
        totals = [*accumulate(_cost(one, file.lines) for one, file in pairs)]
        if not totals or totals[-1] <= room:
            break
    count = sum(1 for _ in takewhile(lambda total: total <= room, totals))
    return shown[:count], totals[count - 1] if count else 0


def _files_with(
    found: NameMatch, ranked: Sequence[RankedFile], current: CurrentFiles, limit: int
) -> Iterator[_File]:
    """Yield the files that have something of the name, at most 24."""
    defining = _by_blob(found.defining)
    using = _by_blob(found.using)
    left = limit * _DEFINITION_SHARE
    has = using.keys() | defining.keys()
    known = [file for file in ranked if file.blob_id in has]
    first = [file.blob_id for file in known if file.blob_id in defining]
    first = first[:_MOST_DEFINITIONS]
    known.sort(key=lambda file: file.blob_id not in first)
    for file in known[:MAX_NAME_FILES]:
        lines = current.lines_of(file.blob_id)
        spans = current.spans_of(file.blob_id)
        if lines is None:
            continue
        whole = []
        for span in _spans(defining.get(file.blob_id, ())[:1], spans):
            if span.chars <= left:
                whole.append(span)
                left -= span.chars
        places = (
            (line, span)
            for span in _spans(using.get(file.blob_id, ()), spans)
            for line in _places(lines, span, found)
        )
        some = [*islice(places, 2 * _MOST_PLACES)]
        # An import says less than a call, and is shown where there is no other use.
        told = [place for place in some if not IMPORTS.match(lines[place[0]])] or some
        if whole or told:
            shown = tuple(told[:_MOST_PLACES])
            yield _File(
                file, lines, tuple(whole), shown, found.is_implementation_search
            )


def _by_blob(chunks: Iterable[ChunkScore]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for chunk in chunks:
        found.setdefault(chunk.blob_id, []).append(chunk.ordinal)
    return found


def _spans(ordinals: Iterable[int], spans: Sequence[Span]) -> list[Span]:
    return [spans[n] for n in sorted(ordinals) if n < len(spans)]


def _places(lines: Sequence[str], span: Span, found: NameMatch) -> Iterator[int]:
    """Yield the lines of a chunk that use the name; not those that define it."""
    if found.methods:
        has = re.compile(rf"\bfunc \([^)]*\) {re.escape(found.methods[0])}\(")
        yield from (n for n in _range(span, lines) if has.search(lines[n]))
        return
    name = re.escape(found.question.name)
    said = re.compile(rf"(?<![\w$]){name}(?![\w$])")
    defines = re.compile(rf"{_DEFINES}\s+(?:\([^()]*\)\s*)?{name}(?![\w$])")
    for number in _range(span, lines):
        line = lines[number]
        if found.question.name not in line or not said.search(line):
            continue
        if _COMMENT.match(line) or defines.search(line):
            continue
        if not found.is_implementation_search or _HEADER.search(line):
            yield number


def _range(span: Span, lines: Sequence[str]) -> range:
    return range(span.first, min(span.last + 1, len(lines)))


def _cost(file: PackedFile, lines: Sequence[str]) -> int:
    cost = len(PATH_LINE) + len(file.path)
    for first, last in file.sections:
        cost += len(GAP_LINE) + sum(
            min(len(line), MAX_LINE_CHARS) + NUMBER_WIDTH + 1
            for line in lines[first : last + 1]
        )
    return cost
