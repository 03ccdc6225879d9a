"""Choose the code for a question about a name: its definition, and lines that use it.

The index has the chunks that define a name, and those that call it, use it as a type,
or extend it (`index/parse/references.py`). The text of the chunks shows which lines do.
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

MAX_NAME_FILES = 24  # shown files
_MAX_USES_OF_FILE = 8
_MAX_DEFINING_FILES = 3  # at the top
_SHORT_LINE_CHARS = 20  # including the line number
# Numbers of lines around each use: the first that fits.
_CONTEXT_SIZES = (12, 5, 2, 1, 0)
# Maximum shares: of definitions, and of uses with definitions, in the limit; of other
# files in the remaining characters.
_DEFINITION_SHARE, _USES_SHARE, _OTHERS_SHARE = 0.35, 0.9, 0.5
_KEYWORD = (
    r"\b(?:def|class|fn|func|function|struct|interface|enum|trait|type|object|record"
    r"|mod)"
)
_COMMENT = re.compile(r"\s*(?://|/\*|\*|--|;|%|#(?!\w|\[))")
_HEADER_KEYWORD = re.compile(
    r"\b(?:class|struct|interface|impl|trait|extends|implements|object|record|enum|type"
    r"|extension|protocol|include|extend|prepend|use|with)\b|:"
)


class _FileUses(NamedTuple):
    """The whole definitions of a name in a file, and the lines that use it."""

    file: RankedFile
    lines: Sequence[str]
    definitions: tuple[Span, ...]
    uses: tuple[tuple[int, Span], ...]  # line numbers, each with its chunk
    is_class_start: bool  # uses begin classes: the lines below say more

    def show(self, context: int) -> PackedFile:
        """Return the file's sections, with `context` lines around each use."""
        lines_before = 0 if self.is_class_start else context
        end = len(self.lines) - 1
        lines_after = 2 * context - lines_before
        uses = [
            Section(
                max(span.first, line - lines_before),
                min(end if self.is_class_start else span.last, line + lines_after),
            )
            for line, span in self.uses
        ]
        if not context:  # the line alone, so the enclosing line is shown too
            enclosing = (find_enclosing(self.lines, line)[-1:] for line, _ in self.uses)
            uses += [Section(n, n) for numbers in enclosing for n in numbers]
        sections = merge_spans([*self.definitions, *uses])
        return PackedFile(self.file.blob_id, self.file.path, sections)


def pack_uses(
    match: NameMatch,
    ranked: Sequence[RankedFile],
    current: CurrentFiles,
    limit: int,
    glimpse: Callable[[RankedFile], Span | None],
    parts: int = 1,
) -> PackedAnswer:
    """Choose what an answer shows of a name: its definition, then each file's uses.

    Files that define the name come first; otherwise files keep their order. All uses
    have the same number of lines around them, as many as fit. Code of other files comes
    last. If the question has several `parts`, the name gets the share of one part.
    """
    files = [*_files_with(match, ranked, current, limit // parts)]
    shown, cost = _show(files, limit * _USES_SHARE / parts)
    shown_blobs = {file.blob_id for file in shown}
    remaining = [file for file in ranked if file.blob_id not in shown_blobs]
    others_share = _OTHERS_SHARE if parts == 1 else 1.0
    free = int((limit - cost) * others_share)
    others = pack(remaining, current.spans_of, free, glimpse)
    return PackedAnswer((*shown, *others.files), others.others)


def _show(files: Sequence[_FileUses], limit: float) -> tuple[list[PackedFile], int]:
    """Return the sections of the files that fit into the limit, and their cost."""
    shown: list[PackedFile] = []
    totals: list[int] = []
    for context in _CONTEXT_SIZES:
        shown = [file.show(context) for file in files]
        lines = sum(last - first + 1 for one in shown for first, last in one.sections)
        if context and lines * _SHORT_LINE_CHARS > limit:
            continue
        pairs = zip(shown, files, strict=True)
        totals = [*accumulate(_cost(one, file.lines) for one, file in pairs)]
        if not totals or totals[-1] <= limit:
            break
    count = sum(1 for _ in takewhile(lambda total: total <= limit, totals))
    return shown[:count], totals[count - 1] if count else 0


def _files_with(
    match: NameMatch, ranked: Sequence[RankedFile], current: CurrentFiles, limit: int
) -> Iterator[_FileUses]:
    """Yield the files that define or use the name, at most 24."""
    defining = _ordinals_by_blob(match.defining)
    using = _ordinals_by_blob(match.using)
    definition_chars = limit * _DEFINITION_SHARE
    blobs = using.keys() | defining.keys()
    matching = [file for file in ranked if file.blob_id in blobs]
    defining_first = [file.blob_id for file in matching if file.blob_id in defining]
    defining_first = defining_first[:_MAX_DEFINING_FILES]
    matching.sort(key=lambda file: file.blob_id not in defining_first)
    for file in matching[:MAX_NAME_FILES]:
        lines = current.lines_of(file.blob_id)
        spans = current.spans_of(file.blob_id)
        if lines is None:
            continue
        definitions = []
        for span in _spans(defining.get(file.blob_id, ())[:1], spans):
            if span.chars <= definition_chars:
                definitions.append(span)
                definition_chars -= span.chars
        all_uses = (
            (line, span)
            for span in _spans(using.get(file.blob_id, ()), spans)
            for line in _use_lines(lines, span, match)
        )
        uses = [*islice(all_uses, 2 * _MAX_USES_OF_FILE)]
        # An import says less than a call, and is shown only if there is no other use.
        uses = [use for use in uses if not IMPORTS.match(lines[use[0]])] or uses
        if definitions or uses:
            shown = tuple(uses[:_MAX_USES_OF_FILE])
            is_class_start = match.is_implementation_search
            yield _FileUses(file, lines, tuple(definitions), shown, is_class_start)


def _ordinals_by_blob(chunks: Iterable[ChunkScore]) -> dict[int, list[int]]:
    ordinals: dict[int, list[int]] = {}
    for chunk in chunks:
        ordinals.setdefault(chunk.blob_id, []).append(chunk.ordinal)
    return ordinals


def _spans(ordinals: Iterable[int], spans: Sequence[Span]) -> list[Span]:
    return [spans[n] for n in sorted(ordinals) if n < len(spans)]


def _use_lines(lines: Sequence[str], span: Span, match: NameMatch) -> Iterator[int]:
    """Yield the numbers of the lines of a chunk that use the name, not define it."""
    if match.methods:
        method = re.compile(rf"\bfunc \([^)]*\) {re.escape(match.methods[0])}\(")
        yield from (n for n in _line_range(span, lines) if method.search(lines[n]))
        return
    name = re.escape(match.question.name)
    use = re.compile(rf"(?<![\w$]){name}(?![\w$])")
    definition = re.compile(rf"{_KEYWORD}\s+(?:\([^()]*\)\s*)?{name}(?![\w$])")
    for number in _line_range(span, lines):
        line = lines[number]
        if match.question.name not in line or not use.search(line):
            continue
        if _COMMENT.match(line) or definition.search(line):
            continue
        if not match.is_implementation_search or _HEADER_KEYWORD.search(line):
            yield number


def _line_range(span: Span, lines: Sequence[str]) -> range:
    return range(span.first, min(span.last + 1, len(lines)))


def _cost(file: PackedFile, lines: Sequence[str]) -> int:
    cost = len(PATH_LINE) + len(file.path)
    for first, last in file.sections:
        cost += len(GAP_LINE) + sum(
            min(len(line), MAX_LINE_CHARS) + NUMBER_WIDTH + 1
            for line in lines[first : last + 1]
        )
    return cost
