"""Rank files by the scores of their chunks, their names and kinds, and the history.

    score = ( sum of the five best chunks, each weighted half of the one before;
              the best plus a fifth of the second if the question names a format
            + 0.1 x best sum of all files x share of the file name's words in the query
            + BM25 score of the messages of its commits
            + up to 0.75 x best score of all files if the question consists of one
              identifier and the file defines it )
          x factor of its kind (tests and documents below code)
          + gain from files that were changed in the same commits

If the question is who uses a name, files that define or use it come first.

The formula and its weights were measured (docs/reference/retrieval.md). The factor of
the kind matters most: without it, tests and documents crowd out the code that they
describe.
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
from byok.search.retrieval.names import NameIntent, NameMatch
from byok.search.retrieval.query import STOP_WORDS, TASK_WORDS, Query

_CHUNK_WEIGHTS = (1.0, 0.5, 0.25, 0.125, 0.0625)
# If the question names a format: files of a format mostly have one chunk, and code
# about the format has many.
_FORMAT_CHUNK_WEIGHTS = (1.0, 0.2)
_FILE_NAME_WEIGHT = 0.1
# Shares of the best score that a file gains by the definition of a name: of the name
# that is the whole question, more in a file of that name, and of a name among others.
_DEFINITION_WEIGHT = 0.5
_SAME_FILE_NAME_FACTOR = 1.5
_MENTION_WEIGHT = 0.1
# The same for a name whose uses or implementations the question asks for. The weight of
# a definition is for up to three definitions of the name, and less for more.
_SOUGHT_WEIGHT, _USE_WEIGHT = 2.0, 1.0
_FEW_DEFINITIONS = 3
_FACTOR_OF_KIND = {
    Kind.CODE: 1.0,
    Kind.CONF: 0.6,
    Kind.GEN: 0.5,
    Kind.EXAMPLE: 0.5,
    Kind.TEST: 0.3,
    Kind.DOC: 0.25,
}
NO_KINDS: Mapping[Kind, float] = MappingProxyType({})
_FORMAT_FACTOR = 1.5  # of a file whose format the query names
_COCHANGE_SEEDS = 20  # best files whose companions gain
_MAX_FILES_OF_HISTORY = 100  # files without matching text
MAX_RANKED_FILES = 100
# BM25 over commit messages. A term counts 1/sqrt(number of files in the commit).
_K1 = 4.0
_B = 0.5
_COCHANGE_WEIGHT = 0.1
_MAX_COMMITS_OF_FILE = 200  # the newest
_MAX_CACHED_COMPANIONS = 500  # files: questions often find the same ones
# Numbers of the files that were changed with a file, their shares, and the shares' sum.
_Companions: TypeAlias = "tuple[array[int], array[float], float]"


class HistorySignals:
    """An immutable index of a commit history, for the files of one view.

    Commit messages describe the files of the commit, and files that change in the same
    commits belong together; both were measured (docs/reference/retrieval.md). Indexing
    3,000 commits takes about a quarter of a second and a few MB of memory.
    """

    def __init__(self, history: CommitHistory, paths: Iterable[str]) -> None:
        view = frozenset(paths)
        self._size = len(view)
        self._numbers: dict[str, int] = {}
        self._commits: list[tuple[int, ...]] = []
        self._weights = array("d")
        self._postings: dict[str, array[int]] = {}
        lengths: list[float] = []
        commits_of_file: list[list[int]] = []
        for commit in history.commits:
            in_view = [path for path in commit.files if path in view]
            if not in_view or not commit.telling:
                continue
            files = tuple(
                self._numbers.setdefault(path, len(self._numbers)) for path in in_view
            )
            new = len(self._numbers) - len(lengths)
            lengths += [0.0] * new
            commits_of_file += ([] for _ in range(new))
            weight = 1 / math.sqrt(len(files))
            message_terms = set(terms(commit.message)) - STOP_WORDS - TASK_WORDS
            for term in message_terms:
                postings = self._postings.setdefault(term, array("I"))
                postings.append(len(self._commits))
            for file in files:
                lengths[file] += weight * len(message_terms)
                commits_of_file[file].append(len(self._commits))
            self._commits.append(files)
            self._weights.append(weight)
        self._companion_cache = BoundedMap[int, _Companions](_MAX_CACHED_COMPANIONS)
        self._path_of_file = list(self._numbers)
        self._commits_of_file = [array("I", numbers) for numbers in commits_of_file]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._lengths = array(
            "d", [1 - _B + _B * length / average for length in lengths]
        )

    def text_scores(self, query: Mapping[str, float]) -> dict[str, float]:
        """Return the BM25 score of the messages of each file's commits, by path."""
        scores: dict[int, float] = defaultdict(float)
        for term, weight in query.items():
            counts: dict[int, float] = defaultdict(float)
            for commit in self._postings.get(term, ()):
                share = self._weights[commit]
                for file in self._commits[commit]:
                    counts[file] += share
            rarity = math.log(
                1 + (self._size - len(counts) + 0.5) / (len(counts) + 0.5)
            )
            factor = weight * rarity * (_K1 + 1)
            for file, count in counts.items():
                scores[file] += factor * count / (count + _K1 * self._lengths[file])
        return {self._path_of_file[file]: score for file, score in scores.items()}

    def cochange(self, top: Mapping[str, float]) -> dict[str, float]:
        """Return the gains of files that were changed with scored files, by path.

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
                gains[other] += _COCHANGE_WEIGHT * score * share / total
        return {self._path_of_file[file]: gain for file, gain in gains.items()}

    def _companions(self, file: int) -> _Companions:
        if (cached := self._companion_cache.get(file)) is not None:
            return cached
        counts: dict[int, float] = defaultdict(float)
        for commit in self._commits_of_file[file][:_MAX_COMMITS_OF_FILE]:
            files = self._commits[commit]
            for other in files:
                if other != file:
                    counts[other] += 1 / (len(files) - 1)
        shares = array("d", counts.values())
        companions = (array("I", counts), shares, sum(shares))
        self._companion_cache[file] = companions
        return companions


class JoinedHistorySignals(Struct, eq=False):
    """The history signals of several workspaces, by the prefix of their paths.

    The prefix is "" for a single workspace, else `label/`.
    """

    parts: Mapping[str, HistorySignals]

    def text_scores(self, query: Mapping[str, float]) -> dict[str, float]:
        """Return `HistorySignals.text_scores` of all workspaces, by prefixed path."""
        return {
            prefix + path: score
            for prefix, signals in self.parts.items()
            for path, score in signals.text_scores(query).items()
        }

    def cochange(self, top: Mapping[str, float]) -> dict[str, float]:
        """Return `HistorySignals.cochange` of all workspaces, by prefixed path."""
        gains = {}
        for prefix, signals in self.parts.items():
            scores = {
                path.removeprefix(prefix): score
                for path, score in top.items()
                if path.startswith(prefix)
            }
            for path, gain in signals.cochange(scores).items():
                gains[prefix + path] = gain
        return gains


class FileEntry(NamedTuple):
    """A file of the view; `blob_id` stands for the indexed version of its content."""

    blob_id: int
    path: str
    kind: Kind


class Reasons(NamedTuple):
    """The parts of a score.

    The score is `(text + name + history + definition + use) x kind + cochange`.
    """

    text: float
    name: float
    history: float
    kind: float
    cochange: float
    definition: float = 0.0
    use: float = 0.0


class RankedFile(Struct, frozen=True):
    """A ranked file with its matching chunks, best first; there may be none.

    `vector` is the part of the score that `fuse` added, `reasons` are all other parts.
    `place` is its rank before a model moved it, counted from 1; 0 if it was not moved.
    A file that was moved has the score of its new rank.
    """

    blob_id: int
    path: str
    kind: Kind
    score: float
    chunks: tuple[ChunkScore, ...]
    reasons: Reasons
    vector: float = 0.0
    place: int = 0


def kind_factor(kind: Kind, least_factors: Mapping[Kind, float] = NO_KINDS) -> float:
    """Return the factor of a kind; `least_factors` are of kinds the question names."""
    return max(_FACTOR_OF_KIND[kind], least_factors.get(kind, 0.0))


def rank(
    chunks: Iterable[ChunkScore],
    file_of_blob: Callable[[int], FileEntry | None],
    query: Query,
    signals: JoinedHistorySignals | None = None,
    file_of_path: Callable[[str], FileEntry | None] = lambda _: None,
    *,
    defining: Sequence[ChunkScore] = (),
    names: Sequence[NameMatch] = (),
    limit: int = MAX_RANKED_FILES,
) -> list[RankedFile]:
    """Rank the files of a view, best first; equal scores in the order of paths.

    `defining` are chunks that define `query.identifier`, with scores of at most 1;
    `names` are the names in the question, with the chunks that define and use them.

    `file_of_blob` and `file_of_path` look up files of the view and return None for
    others, which are left out. The history can add files whose text does not match.
    """
    ranking = _Ranking(_chunks_by_file(chunks, file_of_blob), query, file_of_path)
    if signals:
        ranking.add_messages(signals)
    if defining:
        weight = _DEFINITION_WEIGHT
        ranking.add_definitions(
            _chunks_by_file(defining, file_of_blob), query.identifier, weight
        )
    for match in names:
        files = _chunks_by_file(match.defining, file_of_blob)
        using = _chunks_by_file(match.using, file_of_blob)
        if match.question.intent is NameIntent.NOTHING:
            if files and match.question.name != query.identifier:
                weight = _MENTION_WEIGHT / len(files)
                ranking.add_definitions(files, match.question.name, weight)
        else:
            weight = _SOUGHT_WEIGHT * min(1, _FEW_DEFINITIONS / (len(files) or 1))
            ranking.add_definitions(files, match.question.name, weight)
            ranking.add_uses(using)
    if signals:
        ranking.add_companions(signals)
    return ranking.best(limit)


class _Ranking:
    """The files to rank, and the parts of their scores, by path."""

    def __init__(
        self,
        chunks: Mapping[str, tuple[FileEntry, list[ChunkScore]]],
        query: Query,
        file_of_path: Callable[[str], FileEntry | None],
    ) -> None:
        self._query = query
        self._file_of_path = file_of_path
        self._files = {path: entry for path, (entry, _) in chunks.items()}
        self._chunks = {path: tuple(scored) for path, (_, scored) in chunks.items()}
        weights = _CHUNK_WEIGHTS if query.formats is None else _FORMAT_CHUNK_WEIGHTS
        self._text = {
            path: sum(
                weight * chunk.score
                for weight, chunk in zip(weights, scored, strict=False)
            )
            for path, (_, scored) in chunks.items()
        }
        self._name_weight = _FILE_NAME_WEIGHT * max(self._text.values(), default=0.0)
        self._messages: Mapping[str, float] = {}
        self._gains: Mapping[str, float] = {}
        self._definitions: dict[str, float] = {}
        self._uses: dict[str, float] = {}
        self._base_scores: dict[str, float] = {}

    def add_messages(self, signals: JoinedHistorySignals) -> None:
        """Add the scores of commit messages, and files that match by them alone."""
        self._messages = signals.text_scores(self._query.terms)
        self._add_files(_top_scores(self._messages, _MAX_FILES_OF_HISTORY))

    def add_definitions(
        self,
        definitions: Mapping[str, tuple[FileEntry, list[ChunkScore]]],
        name: str,
        weight: float,
    ) -> None:
        """Raise the files that define a name, even if no word of theirs matches."""
        best = self._best_text_score
        for path, (entry, chunks) in definitions.items():
            gain = weight * best * chunks[0].score
            if _is_file_named_like(path, name):
                gain *= _SAME_FILE_NAME_FACTOR
            self._definitions[path] = max(gain, self._definitions.get(path, 0.0))
            self._add_chunk(path, entry, chunks)

    def add_uses(self, uses: Mapping[str, tuple[FileEntry, list[ChunkScore]]]) -> None:
        """Raise the files that use a name: the more chunks use it, the more."""
        best = self._best_text_score
        for path, (entry, chunks) in uses.items():
            self._uses[path] = _USE_WEIGHT * best * len(chunks) / (len(chunks) + 0.5)
            if path not in self._definitions:
                self._add_chunk(path, entry, chunks)
            self._base_scores.pop(path, None)

    def add_companions(self, signals: JoinedHistorySignals) -> None:
        """Raise the files that were changed together with the best ones."""
        self._gains = signals.cochange(_top_scores(self._scores(), _COCHANGE_SEEDS))
        self._add_files(_top_scores(self._gains, _MAX_FILES_OF_HISTORY))

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
            for path, score in _top_scores(self._scores(), limit).items()
            if score > 0
        ]

    @property
    def _best_text_score(self) -> float:
        scores = (s for path, s in self._scores().items() if path in self._text)
        return max(scores, default=0.0) or 1.0

    def _add_chunk(
        self, path: str, entry: FileEntry, chunks: Sequence[ChunkScore]
    ) -> None:
        self._files.setdefault(path, entry)
        self._base_scores.pop(path, None)
        if matching := self._chunks.get(path, ()):
            # The definition comes first, with the best score, so it is shown.
            first = chunks[0]._replace(score=matching[0].score)
            others = (chunk for chunk in matching if chunk.ordinal != first.ordinal)
            chunks = (first, *others)
        self._chunks[path] = tuple(chunks)

    def _add_files(self, paths: Iterable[str]) -> None:
        """Add files of the view that have no matching text yet."""
        for path in paths:
            if (
                path not in self._files
                and (entry := self._file_of_path(path)) is not None
            ):
                self._files[path] = entry

    def _scores(self) -> dict[str, float]:
        for path in self._files.keys() - self._base_scores.keys():
            reasons = self._reasons(path)
            score = reasons.text + reasons.name + reasons.history
            score += reasons.definition + reasons.use
            self._base_scores[path] = score * reasons.kind
        gains = self._gains
        return {
            path: score + gains.get(path, 0.0)
            for path, score in self._base_scores.items()
        }

    def _reasons(self, path: str) -> Reasons:
        name = 0.0
        words = _words_of_name(path.rpartition("/")[2]) if path in self._text else ()
        if words:
            share = len(self._query.parts.intersection(words)) / len(words)
            name = self._name_weight * share
        factor = kind_factor(self._files[path].kind, self._query.kinds)
        if self._query.formats is not None and self._query.formats.search(path):
            factor = _FORMAT_FACTOR
        return Reasons(
            self._text.get(path, 0.0),
            name,
            self._messages.get(path, 0.0),
            factor,
            self._gains.get(path, 0.0),
            self._definitions.get(path, 0.0),
            self._uses.get(path, 0.0),
        )


def _chunks_by_file(
    chunks: Iterable[ChunkScore], file_of_blob: Callable[[int], FileEntry | None]
) -> dict[str, tuple[FileEntry, list[ChunkScore]]]:
    """Group the chunks by file, best first."""
    of_blob: dict[int, list[ChunkScore]] = defaultdict(list)
    for chunk in chunks:
        of_blob[chunk.blob_id].append(chunk)
    by_path = {}
    for blob_id, scored in of_blob.items():
        entry = file_of_blob(blob_id)
        if entry is not None:
            scored.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
            by_path[entry.path] = (entry, scored)
    return by_path


def _is_file_named_like(path: str, identifier: str) -> bool:
    """Tell whether a file is named like an identifier: `join_set.rs`, `JoinSet.kt`."""
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


def _top_scores(scores: Mapping[str, float], count: int) -> dict[str, float]:
    best = heapq.nsmallest(count, scores.items(), key=lambda item: (-item[1], item[0]))
    return dict(best)
