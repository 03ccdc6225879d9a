"""Choose which lines of which files go into an answer of a given length.

Greedy: take the chunk of the highest value next, as long as there is room. Its value is

    (file / best file)^3 x (chunk / best of its file) x 0.9^(chunks taken of the file)

so that the first file is shown at length and a good second one still gets in; one file
gets more than its share of the answer only where others leave room. This was measured
against a quota for each file (docs/reference/retrieval.md).

The files behind those are shown by one line each, as long as there is room: a bare path
tells a model little. Where many files are nearly as good as the best, the right one may
be any of them, and more are shown so: the more there are, the more.
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
# How many files are shown by one line, and their share of the limit. More, if the file
# behind so many has this share of the best score; the last row that holds counts.
_GLIMPSES, _GLIMPSES_SHARE = 12, 0.07
_MORE_GLIMPSES = ((24, 0.11, 0.2), (40, 0.19, 0.15))
_LISTED = 20  # with these; the others by their paths
_SHARE = 0.98  # of the limit
_LARGEST = 0.4  # of the limit, for one file
_STEEPNESS = 3
_ENCLOSING = 15  # characters of the lines that say what a section is in, on average
_DECAY = 0.9
_WEAKEST = 0.05
_NOTHING_FITS = 150
_MERGED_GAP = 3
_COMPARED = 60  # of the best files, those that may be copies
_SHORTEST_COPY = 200  # characters


class Section(NamedTuple):
    """A range of lines of a file, both inclusive, counted from 0."""

    first: int
    last: int


class PackedFile(NamedTuple):
    """What is shown of a file: its sections in order, at least four lines apart."""

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
    them. The first chunk is taken even if it does not fit. A file that was found by its
    history alone contributes its first span. `glimpse` returns the line that says most
    of a file, None where none can be shown.
    """
    taken: dict[int, list[Span]] = defaultdict(list)
    spent: dict[int, int] = defaultdict(int)
    most, share = _glimpses(ranked) if glimpse else (0, 0.0)
    room = limit * (_SHARE - share)
    spans = _spans_by_value(ranked[:MAX_CODE_FILES], spans_of)
    for largest in (limit * _LARGEST, limit):
        beyond: list[tuple[int, Span]] = []
        for place, span in spans:
            cost = _cost(span)
            if place not in taken:
                cost += len(PATH_LINE) + len(ranked[place].path)
            elif spent[place] + cost > largest:
                beyond.append((place, span))
                continue
            if cost <= room or not taken:
                taken[place].append(span)
                spent[place] += cost
                room -= cost
            if room < _NOTHING_FITS:
                break
        spans = beyond
    files = tuple(
        PackedFile(ranked[place].blob_id, ranked[place].path, merge_spans(taken[place]))
        for place in sorted(taken)
    )
    others = [file for place, file in enumerate(ranked) if place not in taken]
    glimpses = _glimpse(others[:most], glimpse, room + limit * share) if glimpse else []
    seen = {file.path for file in glimpses}
    rest = [file.path for file in others if file.path not in seen]
    return PackedAnswer(
        (*files, *glimpses), tuple(rest[: max(0, _LISTED - len(glimpses))])
    )


def leave_out_copies(
    ranked: Sequence[RankedFile],
    spans_of: Callable[[int], Sequence[Span]],
    lines_of: Callable[[int], Sequence[str] | None],
) -> tuple[list[RankedFile], Mapping[int, Sequence[str]]]:
    """Return the files without copies, and the paths of these by the blob that stays.

    Half of a copy, and all that matches of it, is in a better file too, word for word:
    versions of one file, templates, a second work tree below the first. `lines_of` is
    asked only for files whose best chunks are of one size.
    """
    sizes = [_size_of_best(file, spans_of) for file in ranked[:_COMPARED]]
    common = {size for size, count in Counter(sizes).items() if size and count > 1}
    kept: list[RankedFile] = []
    there: dict[int, frozenset[str]] = {}
    copies: dict[int, list[str]] = defaultdict(list)
    for file, size in zip(ranked, sizes, strict=False):
        lines = lines_of(file.blob_id) if size in common else None
        if lines is not None:
            spans = spans_of(file.blob_id)
            texts = ["\n".join(lines[span.first : span.last + 1]) for span in spans]
            own = frozenset(texts)
            matching = {texts[c.ordinal] for c in file.chunks if c.ordinal < len(texts)}
            shown = next(
                (
                    blob_id
                    for blob_id, known in there.items()
                    if matching <= known and 2 * len(own & known) >= len(own)
                ),
                None,
            )
            if shown is not None:
                copies[shown].append(file.path)
                continue
            there[file.blob_id] = own
        kept.append(file)
    return [*kept, *ranked[_COMPARED:]], copies


def _size_of_best(
    file: RankedFile, spans_of: Callable[[int], Sequence[Span]]
) -> tuple[int, int] | None:
    """Return lines and characters of the best chunk; None if there is none to tell."""
    spans = spans_of(file.blob_id) if file.chunks else ()
    if not spans or file.chunks[0].ordinal >= len(spans):
        return None
    first, last, chars = spans[file.chunks[0].ordinal]
    return (last - first, chars) if chars >= _SHORTEST_COPY else None


def pack_glimpses(
    ranked: Sequence[RankedFile],
    glimpse: Callable[[RankedFile], Span | None],
    limit: int,
) -> PackedAnswer:
    """Choose a line of each of the first files, where more would say nothing."""
    return PackedAnswer(tuple(_glimpse(ranked[:_GLIMPSES], glimpse, limit)), ())


def _glimpses(ranked: Sequence[RankedFile]) -> tuple[int, float]:
    """Return how many files are shown by one line, and their share of the limit."""
    found = _GLIMPSES, _GLIMPSES_SHARE
    for most, share, nearly in _MORE_GLIMPSES:
        if ranked[most:] and ranked[most].score > nearly * ranked[0].score:
            found = most, share
    return found


def _glimpse(
    ranked: Sequence[RankedFile],
    glimpse: Callable[[RankedFile], Span | None],
    room: float,
) -> list[PackedFile]:
    """Return what one line shows of files, of as many as there is room for."""
    found: list[PackedFile] = []
    for file in ranked:
        if (span := glimpse(file)) is None:
            continue
        room -= _cost(span) + len(PATH_LINE) + len(file.path)
        if room < 0:
            break
        section = Section(span.first, span.last)
        found.append(PackedFile(file.blob_id, file.path, (section,)))
    return found


def _spans_by_value(
    ranked: Sequence[RankedFile], spans_of: Callable[[int], Sequence[Span]]
) -> Iterable[tuple[int, Span]]:
    """Yield the position of a file and one of its spans, the highest value first."""
    heap: list[tuple[float, int, int]] = []
    for place, file in enumerate(ranked):
        heapq.heappush(
            heap, (-((file.score / ranked[0].score) ** _STEEPNESS), place, 0)
        )
    while heap:
        worth, place, turn = heapq.heappop(heap)
        file = ranked[place]
        spans = spans_of(file.blob_id)
        ordinal = file.chunks[turn].ordinal if file.chunks else 0
        if ordinal < len(spans):
            yield place, spans[ordinal]
        if turn + 1 < len(file.chunks):
            now, following = _relative(file, turn), _relative(file, turn + 1)
            if following > _WEAKEST:
                worth *= following / now * _DECAY
                heapq.heappush(heap, (worth, place, turn + 1))


def _relative(file: RankedFile, turn: int) -> float:
    return file.chunks[turn].score / (file.chunks[0].score or 1.0)


def _cost(span: Span) -> int:
    lines = span.last - span.first + 1
    around = len(GAP_LINE) + (_ENCLOSING if span.first and lines > 1 else 0)
    return min(span.chars, lines * MAX_LINE_CHARS) + lines * NUMBER_WIDTH + around


def merge_spans(spans: Iterable[Section | Span]) -> tuple[Section, ...]:
    """Return the spans in order; those at most three lines apart become one."""
    found: list[Section] = []
    for span in sorted(spans):
        if found and span.first - found[-1].last - 1 <= _MERGED_GAP:
            last = max(found[-1].last, span.last)
            found[-1] = Section(found[-1].first, last)
        else:
            found.append(Section(span.first, span.last))
    return tuple(found)
