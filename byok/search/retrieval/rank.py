"""The ranking formula: scores of chunks, file names, kinds and the commit history.

    score = ( sum of the five best chunks, each counting half of the one before;
              of the best and a fifth of the second where the question names a format
            + 0.1 x best sum of all files x share of the file name's words in the query
            + BM25 of the messages of its commits
            + up to 0.75 x best score of all files if it defines the identifier that
              is asked for, and nothing else is )
          x factor of its kind (tests and documents below code)
          + gain from files that were changed in the same commits

Where the question is who uses a name, files that define or use it come first.

The formula and its weights were measured (docs/reference/retrieval.md). The factor of
the kind matters most: without it, tests and documents crowd out the code that they talk
about.
"""

import heapq
import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from byok.core.bounded import BoundedMap
from byok.search.index.parse.tokens import COMPOUND, terms
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import CommitHistory, Kind
from byok.search.retrieval.names import NameFound, Wanted
from byok.search.retrieval.query import STOP_WORDS, TASK_WORDS, Query

_CHUNK_WEIGHTS = (1.0, 0.5, 0.25, 0.125, 0.0625)
# Where a format is named: its files are mostly one chunk, and code about it has many.
_FORMAT_CHUNK_WEIGHTS = (1.0, 0.2)
_NAME_WEIGHT = 0.1
# A definition counts this share of the best score, more in a file of the same name.
_DEFINITION_WEIGHT = 0.5
_NAMED_SO = 1.5
_NAMED_WEIGHT = 0.1  # the same where the question says more than the name
# What the definition of a name and each use of it count if that is what is asked for.
_ASKED_DEFINITION, _ASKED_USE = 2.0, 1.0
_FEW_DEFINITIONS = 3
_FACTORS = {
    Kind.CODE: 1.0,
    Kind.CONF: 0.6,
    Kind.GEN: 0.5,
    Kind.EXAMPLE: 0.5,
    Kind.TEST: 0.3,
    Kind.DOC: 0.25,
}
NO_KINDS: Mapping[Kind, float] = MappingProxyType({})
_NAMED_FORMAT = 1.5  # of a file whose format the query names
_CHANGE_FROM = 20
_BY_HISTORY = 100
MOST_FILES = 100


# Score files by the commit history: messages that match, and files changed together.
#
# Both were measured (docs/reference/retrieval.md): the messages of the commits that
# touched a file describe it, and files that change in the same commits belong together.


# BM25 over messages. A term counts 1/sqrt(number of files in the commit).
_K1 = 4.0
_B = 0.5
_COCHANGE = 0.1
# Of a file that changes often, only the newest commits are used.
_MOST_COMMITS = 200
_MOST_KEPT = 500  # files whose companions are kept: the same ones are found often
# Files changed with one, their shares, and the sum of these.
_Companions: TypeAlias = "tuple[array[int], array[float], float]"


class HistorySignals:
    """An immutable index of a commit history, for the files of one view.

    3,000 commits take about a quarter of a second to read and a few MB to keep.
    """

    __slots__ = (
        "_commits",
        "_kept",
        "_lengths",
        "_numbers",
        "_of_file",
        "_paths",
        "_postings",
        "_size",
        "_weights",
    )

    def __init__(self, history: CommitHistory, paths: Iterable[str]) -> None:
        view = frozenset(paths)
        self._size = len(view)
        self._numbers: dict[str, int] = {}
        self._commits: list[tuple[int, ...]] = []
        self._weights = array("d")
        self._postings: dict[str, array[int]] = {}
        lengths: list[float] = []
        of_file: list[list[int]] = []
        for commit in history.commits:
            kept = [path for path in commit.files if path in view]
            if not kept or not commit.telling:
                continue
            files = tuple(self._number_of(path, lengths, of_file) for path in kept)
            weight = 1 / math.sqrt(len(files))
            said = self._index_message(commit.message, len(self._commits))
            for file in files:
                lengths[file] += weight * said
                of_file[file].append(len(self._commits))
            self._commits.append(files)
            self._weights.append(weight)
        self._kept = BoundedMap[int, _Companions](_MOST_KEPT)
        self._paths = list(self._numbers)
        self._of_file = [array("I", numbers) for numbers in of_file]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._lengths = array(
            "d", [1 - _B + _B * length / average for length in lengths]
        )

    def _number_of(
        self, path: str, lengths: list[float], of_file: list[list[int]]
    ) -> int:
        number = self._numbers.setdefault(path, len(self._numbers))
        if number == len(lengths):
            lengths.append(0.0)
            of_file.append([])
        return number

    def _index_message(self, message: str, commit: int) -> int:
        """Index the terms of a message; return how many there are."""
        said = set(terms(message)) - STOP_WORDS - TASK_WORDS
        for term in said:
            self._postings.setdefault(term, array("I")).append(commit)
        return len(said)

    def text_scores(self, query: Mapping[str, float]) -> dict[str, float]:
        """Return each file's BM25 score for the messages of its commits."""
        scores: dict[int, float] = defaultdict(float)
        for term, weight in query.items():
            counts: dict[int, float] = defaultdict(float)
            for commit in self._postings.get(term, ()):
                share = self._weights[commit]
                for file in self._commits[commit]:
                    counts[file] += share
            factor = weight * self._rarity(len(counts)) * (_K1 + 1)
            for file, count in counts.items():
                scores[file] += factor * count / (count + _K1 * self._lengths[file])
        return {self._paths[file]: score for file, score in scores.items()}

    def _rarity(self, files: int) -> float:
        return math.log(1 + (self._size - files + 0.5) / (files + 0.5))

    def cochange(self, top: Mapping[str, float]) -> dict[str, float]:
        """Return what files gain from scored files that were changed with them.

        Each scored file passes on a tenth of its score, split among the files of its
        commits.
        """
        gains: dict[int, float] = defaultdict(float)
        for path, score in top.items():
            file = self._numbers.get(path)
            if file is None:
                continue
            others, shares, total = self._companions(file)
            for other, share in zip(others, shares, strict=True):
                gains[other] += _COCHANGE * score * share / total
        return {self._paths[file]: gain for file, gain in gains.items()}

    def _companions(self, file: int) -> _Companions:
        kept = self._kept.get(file)
        if kept is None:
            kept = self._kept[file] = self._count_companions(file)
        return kept

    def _count_companions(self, file: int) -> _Companions:
        found: dict[int, float] = defaultdict(float)
        for commit in self._of_file[file][:_MOST_COMMITS]:
            files = self._commits[commit]
            for other in files:
                if other != file:
                    found[other] += 1 / (len(files) - 1)
        shares = array("d", found.values())
        return array("I", found), shares, sum(shares)


class JoinedSignals:
    """The history signals of several workspaces, each with a prefix of its paths."""

    def __init__(self, parts: Mapping[str, HistorySignals]) -> None:
        """Take signals by prefix: "" for a single workspace, else `label/`."""
        self._parts = parts

    def text_scores(self, query: Mapping[str, float]) -> dict[str, float]:
        """Return `HistorySignals.text_scores` of all workspaces, by prefixed path."""
        return {
            prefix + path: score
            for prefix, signals in self._parts.items()
            for path, score in signals.text_scores(query).items()
        }

    def cochange(self, top: Mapping[str, float]) -> dict[str, float]:
        """Return `HistorySignals.cochange` of all workspaces, by prefixed path."""
        found = {}
        for prefix, signals in self._parts.items():
            own = {
                path.removeprefix(prefix): score
                for path, score in top.items()
                if path.startswith(prefix)
            }
            for path, gain in signals.cochange(own).items():
                found[prefix + path] = gain
        return found


# The formula.


class FileEntry(NamedTuple):
    """A file of the view; `blob_id` is the indexed version of its content."""

    blob_id: int
    path: str
    kind: Kind


class Reasons(NamedTuple):
    """The parts of a score.

    It is `(text + name + history + definition + use) x kind + cochange`.
    """

    text: float
    name: float
    history: float
    kind: float
    cochange: float
    definition: float = 0.0
    use: float = 0.0


class RankedFile(Struct, frozen=True):
    """A ranked file, with its matching chunks, best first; there may be none.

    `vector` is the part of the score that `fuse` added; the reasons are all others.
    `place` is where it was, from 1, before a model moved it; 0 if none did. A file that
    was moved has the score of its new place.
    """

    blob_id: int
    path: str
    kind: Kind
    score: float
    chunks: tuple[ChunkScore, ...]
    reasons: Reasons
    vector: float = 0.0
    place: int = 0


def kind_factor(kind: Kind, asked: Mapping[Kind, float] = NO_KINDS) -> float:
    """Return the factor of a kind; at least that of the kinds that are `asked` for."""
    return max(_FACTORS[kind], asked.get(kind, 0.0))


def rank(
    chunks: Iterable[ChunkScore],
    by_blob: Callable[[int], FileEntry | None],
    query: Query,
    signals: JoinedSignals | None = None,
    by_path: Callable[[str], FileEntry | None] = lambda _: None,
    *,
    defining: Sequence[ChunkScore] = (),
    names: Sequence[NameFound] = (),
    limit: int = MOST_FILES,
) -> list[RankedFile]:
    """Rank the files of a view, best first; equal scores in the order of paths.

    `defining` are chunks that define `query.identifier`, with scores of at most 1;
    `names` are those in the question, and what defines and uses them.

    `by_blob` and `by_path` look up files of the view and return None for others, which
    are left out. The history can add files whose text does not match.
    """
    ranking = _Ranking(_chunks_by_file(chunks, by_blob), query, by_path)
    if signals:
        ranking.add_messages(signals)
    if defining:
        worth = _DEFINITION_WEIGHT
        ranking.add_definitions(
            _chunks_by_file(defining, by_blob), query.identifier, worth
        )
    for found in names:
        files = _chunks_by_file(found.defining, by_blob)
        using = _chunks_by_file(found.using, by_blob)
        if found.asked.wanted is Wanted.NOTHING:
            if files and found.asked.name != query.identifier:
                worth = _NAMED_WEIGHT / len(files)
                ranking.add_definitions(files, found.asked.name, worth)
        else:
            worth = _ASKED_DEFINITION * min(1, _FEW_DEFINITIONS / (len(files) or 1))
            ranking.add_definitions(files, found.asked.name, worth)
            ranking.add_uses(using)
    if signals:
        ranking.add_companions(signals)
    return ranking.best(limit)


class _Ranking:
    """The files to rank, and the parts of their scores."""

    def __init__(
        self,
        found: Mapping[str, tuple[FileEntry, list[ChunkScore]]],
        query: Query,
        by_path: Callable[[str], FileEntry | None],
    ) -> None:
        self._query = query
        self._by_path = by_path
        self._files = {path: entry for path, (entry, _) in found.items()}
        self._chunks = {path: tuple(scored) for path, (_, scored) in found.items()}
        weights = _CHUNK_WEIGHTS if query.formats is None else _FORMAT_CHUNK_WEIGHTS
        self._text = {
            path: _sum(scored, weights) for path, (_, scored) in found.items()
        }
        self._name_worth = _NAME_WEIGHT * max(self._text.values(), default=0.0)
        self._messages: Mapping[str, float] = {}
        self._gains: Mapping[str, float] = {}
        self._definitions: dict[str, float] = {}
        self._uses: dict[str, float] = {}
        self._own: dict[str, float] = {}  # scores without gains

    def add_messages(self, signals: JoinedSignals) -> None:
        """Add the scores of commit messages, and files that match by them alone."""
        self._messages = signals.text_scores(self._query.terms)
        self._look_up(_highest(self._messages, _BY_HISTORY))

    def add_definitions(
        self,
        found: Mapping[str, tuple[FileEntry, list[ChunkScore]]],
        name: str,
        weight: float,
    ) -> None:
        """Add to the files that define a name, also if no word of theirs matches."""
        best = self._best
        for path, (entry, chunks) in found.items():
            worth = weight * best * chunks[0].score
            if _is_named(path, name):
                worth *= _NAMED_SO
            self._definitions[path] = max(worth, self._definitions.get(path, 0.0))
            self._add_chunk(path, entry, chunks)

    def add_uses(self, found: Mapping[str, tuple[FileEntry, list[ChunkScore]]]) -> None:
        """Add to the files that use a name, more for more chunks that do."""
        best = self._best
        for path, (entry, chunks) in found.items():
            self._uses[path] = _ASKED_USE * best * len(chunks) / (len(chunks) + 0.5)
            if path not in self._definitions:
                self._add_chunk(path, entry, chunks)
            self._own.pop(path, None)

    @property
    def _best(self) -> float:
        texts = [own for path, own in self._scores().items() if path in self._text]
        return max(texts, default=0.0) or 1.0

    def _add_chunk(
        self, path: str, entry: FileEntry, chunks: Sequence[ChunkScore]
    ) -> None:
        self._files.setdefault(path, entry)
        known = self._chunks.get(path, ())
        self._chunks[path] = _with_first(chunks[0], known) if known else (*chunks,)
        self._own.pop(path, None)

    def add_companions(self, signals: JoinedSignals) -> None:
        """Add what files gain from those that were changed together with them."""
        self._gains = signals.cochange(_highest(self._scores(), _CHANGE_FROM))
        self._look_up(_highest(self._gains, _BY_HISTORY))

    def best(self, limit: int) -> list[RankedFile]:
        """Return the files with the highest scores above 0."""
        return [
            RankedFile(
                self._files[path].blob_id,
                path,
                self._files[path].kind,
                score,
                self._chunks.get(path, ()),
                self._reasons(path),
            )
            for path, score in _highest(self._scores(), limit).items()
            if score > 0
        ]

    def _look_up(self, paths: Iterable[str]) -> None:
        """Add files of the view whose text does not match."""
        for path in paths:
            if path not in self._files and (entry := self._by_path(path)) is not None:
                self._files[path] = entry

    def _scores(self) -> dict[str, float]:
        for path in self._files.keys() - self._own.keys():  # once for each file
            self._own[path] = _without_gain(self._reasons(path))
        gains = self._gains
        return {path: own + gains.get(path, 0.0) for path, own in self._own.items()}

    def _factor(self, path: str) -> float:
        formats = self._query.formats
        if formats is not None and formats.search(path):
            return _NAMED_FORMAT
        return kind_factor(self._files[path].kind, self._query.kinds)

    def _reasons(self, path: str) -> Reasons:
        name = 0.0
        if path in self._text:
            name = self._name_worth * _name_share(path, self._query.parts)
        return Reasons(
            self._text.get(path, 0.0),
            name,
            self._messages.get(path, 0.0),
            self._factor(path),
            self._gains.get(path, 0.0),
            self._definitions.get(path, 0.0),
            self._uses.get(path, 0.0),
        )


def _chunks_by_file(
    chunks: Iterable[ChunkScore], by_blob: Callable[[int], FileEntry | None]
) -> dict[str, tuple[FileEntry, list[ChunkScore]]]:
    """Group the chunks by file, best first."""
    of_blob: dict[int, list[ChunkScore]] = defaultdict(list)
    for chunk in chunks:
        of_blob[chunk.blob_id].append(chunk)
    found = {}
    for blob_id, scored in of_blob.items():
        entry = by_blob(blob_id)
        if entry is not None:
            scored.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
            found[entry.path] = (entry, scored)
    return found


def _with_first(
    definition: ChunkScore, chunks: Sequence[ChunkScore]
) -> tuple[ChunkScore, ...]:
    """Put the chunk with the definition first, as good as the best one: it is shown."""
    others = [chunk for chunk in chunks if chunk.ordinal != definition.ordinal]
    return (definition._replace(score=chunks[0].score), *others)


def _sum(scored: list[ChunkScore], weights: Sequence[float]) -> float:
    best = zip(weights, scored, strict=False)
    return sum(weight * chunk.score for weight, chunk in best)


def _name_share(path: str, parts: frozenset[str]) -> float:
    """Return the share of a file name's words that the query contains."""
    own = _words_of_name(path.rpartition("/")[2])
    return len(own & parts) / len(own) if own else 0.0


def _is_named(path: str, identifier: str) -> bool:
    """Tell whether a file is named like an identifier: `join_set.rs`, `JoinSets.kt`."""
    stem = path.rpartition("/")[2].partition(".")[0]
    if _squash(stem) == _squash(identifier):
        return True
    return _words_of_name(stem) == _words_of_name(identifier)


def _squash(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


@lru_cache(maxsize=8192)
def _words_of_name(name: str) -> frozenset[str]:
    stem = (name.rpartition(".")[0] or name).replace("-", " ").replace(".", " ")
    return frozenset(term for term in terms(stem) if not term.startswith(COMPOUND))


def _without_gain(reasons: Reasons) -> float:
    found = reasons.text + reasons.name + reasons.history
    return (found + reasons.definition + reasons.use) * reasons.kind


def _highest(scores: Mapping[str, float], count: int) -> dict[str, float]:
    best = heapq.nsmallest(count, scores.items(), key=lambda item: (-item[1], item[0]))
    return dict(best)
