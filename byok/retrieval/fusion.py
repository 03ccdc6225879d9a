"""Join what was found by words and what is near by vectors.

    score = score by words
            + 0.3 x best score by words of all files
              x nearness of the file's nearest chunk x factor of its kind

The nearness of a chunk is 0 for the farthest candidate and 1 for the nearest one:
cosines of some models lie all between 0.7 and 0.9. Scores are added and not ranks: a
fusion of ranks, which gives both lists the same weight, made answers worse
(docs/RETRIEVAL.md).

Vectors may still be missing, of a file that was just saved or of most of a workspace. A
file that matches and has none counts as near as those that have one do on average, so
that it neither gains nor loses. Where most have none, words alone decide.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from byok.index.store.chunk_index import ChunkScore
from byok.index.types import Kind
from byok.retrieval.model_aids import NearChunks
from byok.retrieval.rank import FileEntry, RankedFile, Reasons, kind_factor

_WEIGHT = 0.3
# What the nearness of a chunk counts beside its share of the best score in its file.
_CHUNK_WEIGHT = 0.5
_MOST_FILES = 100
_EMBEDDED = frozenset({Kind.CODE, Kind.CONF})
_LEAST_COVERED = 0.5


def fuse(
    files: Sequence[RankedFile],
    near: NearChunks,
    by_blob: Callable[[int], FileEntry | None],
    names: frozenset[Kind] = frozenset(),
    *,
    limit: int = _MOST_FILES,
) -> list[RankedFile]:
    """Return the files in the order of both, best first; equal scores by path.

    `files` are those found by words, `names` the kinds that the question mentions.
    `by_blob` returns None for what is no file of the view; that is left out.
    """
    found = _by_blob(near)
    waiting = [file for file in files if _lacks_vector(file, found)]
    covered = [file for file in files if file.chunks and file.blob_id in found]
    if len(covered) < _LEAST_COVERED * (len(covered) + len(waiting)):
        return list(files[:limit])
    worth = _WEIGHT * (max((file.score for file in files), default=0.0) or 1.0)
    fused = {file.path: file for file in files}
    for blob_id, chunks in found.items():
        entry = by_blob(blob_id)
        if entry is None:
            continue
        file = fused.get(entry.path) or _make_file(entry, names)
        if file.blob_id == blob_id:
            file = replace(file, chunks=_join(file.chunks, chunks))
            fused[entry.path] = _add(file, worth * chunks[0].score)
    if waiting:
        usual = fmean(found[file.blob_id][0].score for file in covered)
        fused |= {file.path: _add(file, worth * usual) for file in waiting}
    ordered = sorted(fused.values(), key=lambda file: (-file.score, file.path))
    return [file for file in ordered[:limit] if file.score > 0]


def _lacks_vector(file: RankedFile, found: Container[int]) -> bool:
    """Tell whether a file that matches is still to have a vector."""
    matches = bool(file.chunks) and file.kind in _EMBEDDED
    return matches and file.blob_id not in found


def _by_blob(near: NearChunks) -> Mapping[int, Sequence[ChunkScore]]:
    """Return the chunks by blob, nearest first; scores from 0 to 1."""
    candidates = {chunk[:2]: chunk for chunk in (*near.nearest, *near.best.values())}
    cosines = [chunk.score for chunk in candidates.values()]
    low, high = min(cosines, default=0.0), max(cosines, default=0.0)
    found: dict[int, list[ChunkScore]] = defaultdict(list)
    for chunk in candidates.values():
        nearness = (chunk.score - low) / (high - low) if high > low else 1.0
        found[chunk.blob_id].append(chunk._replace(score=nearness))
    return {blob_id: _best_first(chunks) for blob_id, chunks in found.items()}


def _make_file(entry: FileEntry, names: frozenset[Kind]) -> RankedFile:
    """Return a file that no word found."""
    reasons = Reasons(0.0, 0.0, 0.0, kind_factor(entry.kind, names), 0.0)
    return RankedFile(entry.blob_id, entry.path, entry.kind, 0.0, (), reasons)


def _add(file: RankedFile, worth: float) -> RankedFile:
    """Return the file with what its nearness is worth."""
    worth *= file.reasons.kind
    return replace(file, score=file.score + worth, vector=worth)


def _join(
    matching: Sequence[ChunkScore], near: Sequence[ChunkScore]
) -> tuple[ChunkScore, ...]:
    """Return the chunks of one file, best first, in the scores of its matches."""
    if not matching:
        return tuple(near)
    scale = _CHUNK_WEIGHT * matching[0].score
    joined = {chunk.ordinal: chunk for chunk in matching}
    for chunk in near:
        score = scale * chunk.score
        if chunk.ordinal in joined:
            score += joined[chunk.ordinal].score
        joined[chunk.ordinal] = chunk._replace(score=score)
    return tuple(_best_first(joined.values()))


def _best_first(chunks: Iterable[ChunkScore]) -> list[ChunkScore]:
    return sorted(chunks, key=lambda chunk: (-chunk.score, chunk.ordinal))
