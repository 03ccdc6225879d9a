"""Choose which lines of which files go into an answer of a given length.

The choice is greedy: the chunk of the highest value comes next, as long as it fits. Its
value, in scores of files and chunks, is

    (file / best file)^3 x (chunk / best of its file) x 0.9^(chunks chosen of the file)

so that the first file is shown at length and a good second one is still included. One
file gets more than its share of the answer only if other files leave characters unused.
This was measured against a quota for each file (docs/reference/retrieval.md).

The next files are shown by one line each (a glimpse), as long as they fit: a bare path
tells a model little. If many files score nearly as high as the best one, each of them
may be the right one, so more files are shown by a glimpse.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from byok.search.index.types import Span
from byok.search.retrieval.rank import RankedFile

MAX_LINE_CHARS = 400
NUMBER_WIDTH = 7  # six columns and a tab
PATH_LINE = "Path: {}\n"
GAP_LINE = "...\n"
MAX_CODE_FILES = 16  # that are shown with code
# The number of files shown by a glimpse, and their share of the limit.
_MAX_GLIMPSES, _GLIMPSE_SHARE = 12, 0.07
# Higher numbers and shares, each with a share of the best score: the last row counts in
# which the file behind that number of files reaches the share.
_MORE_GLIMPSE_LIMITS = ((24, 0.11, 0.2), (40, 0.19, 0.15))
_MAX_LISTED_PATHS = 20  # including glimpses
_CODE_SHARE = 0.98  # of the limit, including glimpses
_MAX_FILE_SHARE = 0.4  # of the limit, for one file
_STEEPNESS = 3
_ENCLOSING_CHARS = 15  # average length of the lines that enclose a section
_DECAY = 0.9
_MIN_CHUNK_SHARE = 0.05  # of the best score in the file
_MIN_FREE_CHARS = 150  # with fewer, nothing else is tried
_MERGED_GAP = 3
_MAX_COMPARED_FILES = 60  # the best ones are compared for copies
_MIN_COPY_CHARS = 200


class Section(NamedTuple):
    """A range of lines of a file, both inclusive, counted from 0."""

    first: int
    last: int


class PackedFile(NamedTuple):
    """The sections of a file to show, in order, at least four lines apart."""

    blob_id: int
    path: str
    sections: tuple[Section, ...]


class PackedAnswer(NamedTuple):
    """The content of an answer: files with sections, and paths that are only listed."""

    files: tuple[PackedFile, ...]
    others: tuple[str, ...]


def pack(
    ranked: Sequence[RankedFile],
    spans_of: Callable[[int], Sequence[Span]],
    limit: int,
    glimpse: Callable[[RankedFile], Span | None] | None = None,
) -> PackedAnswer:
    """Choose chunks for an answer of `limit` characters.

    `spans_of` returns the spans of a blob; the ordinal of a chunk is an index into
    them. The first chunk is chosen even if it does not fit. A file without matching
    text has no chunks and contributes its first span. `glimpse` returns the line of a
    file that tells most about it, None if none can be shown.
    """
    chosen: dict[int, list[Span]] = defaultdict(list)
    used: dict[int, int] = defaultdict(int)
    max_glimpses, share = _glimpse_limits(ranked) if glimpse else (0, 0.0)
    free = limit * (_CODE_SHARE - share)
    spans = _spans_by_value(ranked[:MAX_CODE_FILES], spans_of)
    for file_limit in (limit * _MAX_FILE_SHARE, limit):
        deferred: list[tuple[int, Span]] = []
        for position, span in spans:
            cost = _cost(span)
            if position not in chosen:
                cost += len(PATH_LINE) + len(ranked[position].path)
            elif used[position] + cost > file_limit:
                deferred.append((position, span))
                continue
            if cost <= free or not chosen:
                chosen[position].append(span)
                used[position] += cost
                free -= cost
            if free < _MIN_FREE_CHARS:
                break
        spans = deferred
    files = tuple(
        PackedFile(ranked[n].blob_id, ranked[n].path, merge_spans(chosen[n]))
        for n in sorted(chosen)
    )
    others = [file for n, file in enumerate(ranked) if n not in chosen]
    glimpses: list[PackedFile] = []
    if glimpse:
        free += limit * share
        glimpses = _choose_glimpses(others[:max_glimpses], glimpse, free)
    glimpsed = {file.path for file in glimpses}
    paths = [file.path for file in others if file.path not in glimpsed]
    max_paths = max(0, _MAX_LISTED_PATHS - len(glimpses))
    return PackedAnswer((*files, *glimpses), tuple(paths[:max_paths]))


def pack_glimpses(
    ranked: Sequence[RankedFile],
    glimpse: Callable[[RankedFile], Span | None],
    limit: int,
) -> PackedAnswer:
    """Choose one line of each of the first files that fit into `limit` characters."""
    glimpses = _choose_glimpses(ranked[:_MAX_GLIMPSES], glimpse, limit)
    return PackedAnswer(tuple(glimpses), ())


def remove_copies(
    ranked: Sequence[RankedFile],
    spans_of: Callable[[int], Sequence[Span]],
    lines_of: Callable[[int], Sequence[str] | None],
) -> tuple[list[RankedFile], Mapping[int, Sequence[str]]]:
    """Return the files without copies, and the copies' paths by blob of the original.

    A copy has half of its chunks and all of its matching chunks in common with a better
    file: a version of the same file, a template, a second work tree below the first.
    `lines_of` is called only for files whose best chunks have the same size.
    """
    sizes = [_size_of_best(file, spans_of) for file in ranked[:_MAX_COMPARED_FILES]]
    shared_sizes = {size for size, n in Counter(sizes).items() if size and n > 1}
    originals: list[RankedFile] = []
    texts_by_blob: dict[int, frozenset[str]] = {}
    copies: dict[int, list[str]] = defaultdict(list)
    for file, size in zip(ranked, sizes, strict=False):
        lines = lines_of(file.blob_id) if size in shared_sizes else None
        if lines is not None:
            spans = spans_of(file.blob_id)
            texts = ["\n".join(lines[span.first : span.last + 1]) for span in spans]
            text_set = frozenset(texts)
            matching = {texts[c.ordinal] for c in file.chunks if c.ordinal < len(texts)}
            original = next(
                (
                    blob_id
                    for blob_id, other_texts in texts_by_blob.items()
                    if matching <= other_texts
                    and 2 * len(text_set & other_texts) >= len(text_set)
                ),
                None,
            )
            if original is not None:
                copies[original].append(file.path)
                continue
            texts_by_blob[file.blob_id] = text_set
        originals.append(file)
    return [*originals, *ranked[_MAX_COMPARED_FILES:]], copies


def merge_spans(spans: Iterable[Section | Span]) -> tuple[Section, ...]:
    """Return the spans in order; those at most three lines apart become one."""
    merged: list[Section] = []
    for span in sorted(spans):
        if merged and span.first - merged[-1].last - 1 <= _MERGED_GAP:
            last = max(merged[-1].last, span.last)
            merged[-1] = Section(merged[-1].first, last)
        else:
            merged.append(Section(span.first, span.last))
    return tuple(merged)


def _size_of_best(
    file: RankedFile, spans_of: Callable[[int], Sequence[Span]]
) -> tuple[int, int] | None:
    """Return lines and characters of the best chunk; None if it is missing or short."""
    spans = spans_of(file.blob_id) if file.chunks else ()
    if not spans or file.chunks[0].ordinal >= len(spans):
        return None
    first, last, chars = spans[file.chunks[0].ordinal]
    return (last - first, chars) if chars >= _MIN_COPY_CHARS else None


def _glimpse_limits(ranked: Sequence[RankedFile]) -> tuple[int, float]:
    """Return how many files are shown by a glimpse, and their share of the limit."""
    limits = _MAX_GLIMPSES, _GLIMPSE_SHARE
    for count, share, min_score_share in _MORE_GLIMPSE_LIMITS:
        if ranked[count:] and ranked[count].score > min_score_share * ranked[0].score:
            limits = count, share
    return limits


def _choose_glimpses(
    ranked: Sequence[RankedFile],
    glimpse: Callable[[RankedFile], Span | None],
    free: float,
) -> list[PackedFile]:
    """Return as many of the files as fit into `free` characters, with one line each."""
    glimpses: list[PackedFile] = []
    for file in ranked:
        if (span := glimpse(file)) is None:
            continue
        free -= _cost(span) + len(PATH_LINE) + len(file.path)
        if free < 0:
            break
        section = Section(span.first, span.last)
        glimpses.append(PackedFile(file.blob_id, file.path, (section,)))
    return glimpses


def _spans_by_value(
    ranked: Sequence[RankedFile], spans_of: Callable[[int], Sequence[Span]]
) -> Iterable[tuple[int, Span]]:
    """Yield positions of files with one of their spans, the highest value first."""
    # Keys are negative values, as the smallest key comes first.
    heap: list[tuple[float, int, int]] = []
    for position, file in enumerate(ranked):
        value = (file.score / ranked[0].score) ** _STEEPNESS
        heapq.heappush(heap, (-value, position, 0))
    while heap:
        key, position, n = heapq.heappop(heap)
        file = ranked[position]
        spans = spans_of(file.blob_id)
        ordinal = file.chunks[n].ordinal if file.chunks else 0
        if ordinal < len(spans):
            yield position, spans[ordinal]
        if n + 1 < len(file.chunks):
            share, next_share = _chunk_share(file, n), _chunk_share(file, n + 1)
            if next_share > _MIN_CHUNK_SHARE:
                key *= next_share / share * _DECAY
                heapq.heappush(heap, (key, position, n + 1))


def _chunk_share(file: RankedFile, n: int) -> float:
    return file.chunks[n].score / (file.chunks[0].score or 1.0)


def _cost(span: Span) -> int:
    lines = span.last - span.first + 1
    extra = len(GAP_LINE) + (_ENCLOSING_CHARS if span.first and lines > 1 else 0)
    return min(span.chars, lines * MAX_LINE_CHARS) + lines * NUMBER_WIDTH + extra
