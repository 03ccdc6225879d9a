"""Search the index for a scope, and rank files by words, vectors and history."""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import nlargest
from statistics import fmean
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from byok.search.index.contents import Contents, Entry
from byok.search.index.engine import ContextEngine
from byok.search.index.files.languages import kind_of
from byok.search.index.parse.prepare import NameKind, exact_mark
from byok.search.index.parse.tokens import COMPOUND, join_terms, terms
from byok.search.index.store.chunk_index import CANDIDATES, ChunkScore
from byok.search.index.types import Kind
from byok.search.retrieval.masking import mask_lines
from byok.search.retrieval.model_aids import FindNear, ModelAids, NearChunks
from byok.search.retrieval.names import (
    NameIntent,
    NameMatch,
    NameQuestion,
    definition_marks,
    methods_of_interface,
)
from byok.search.retrieval.parts import join_rankings, split_parts
from byok.search.retrieval.query import STOP_WORDS, TASK_WORDS, Query, parse_query
from byok.search.retrieval.rank import (
    MAX_RANKED_FILES,
    NO_KINDS,
    FileEntry,
    HistorySignals,
    JoinedHistorySignals,
    RankedFile,
    Reasons,
    kind_factor,
    rank,
)
from byok.search.retrieval.scope import Scope

_NEARNESS_WEIGHT = 0.3
# Weight of a chunk's nearness relative to the best word score of its file.
_NEARNESS_WEIGHT_IN_FILE = 0.5
_MAX_FUSED_FILES = 100
_EMBEDDED_KINDS = frozenset({Kind.CODE, Kind.CONF})
_MIN_COVERED_SHARE = 0.5  # of the matching files, for vectors to count
_MAX_FILES_TO_AWAIT = 50
_MAX_DEFINITIONS = 100  # of one name
_MAX_USES = 1_000  # chunks that use one name
_MAX_RANKED_USES = 200  # of these, chunks whose files are ranked
_MAX_COMPOUND_USES = 50
_NON_CODE_KINDS = (Kind.DOC, Kind.CONF, Kind.GEN, None)
# Seconds to wait for the vector of a question, and if no word of it matches.
_VECTOR_SECONDS, _ONLY_VECTOR_SECONDS = 0.4, 5.0
_SCAN_SECONDS = 2.0  # to find near chunks, which takes a few milliseconds
# Share of the sum of each word's best score (docs/reference/retrieval.md).
_MIN_JOINT_SHARE = 0.45
_RERANKED_CHUNKS = 3  # of a file, shown to the model that reranks files
# Words of the best chunks, with which the search is repeated.
_FEEDBACK_CHUNKS = 10
_MAX_RELATED_WORDS, _MAX_RELATED_CANDIDATES = 12, 60
_RELATED_WEIGHT = 0.1  # of the best word; a word of the question has 1
_MAX_RELATED_SHARE = 0.05  # of all chunks: words of more chunks are too common
_MIN_RELATED_CHARS = 3


class Ranking(NamedTuple):
    """Ranked files, best first, index entries by blob id, and names of the question.

    `parts` is the number of questions that were asked at once. `is_only_near` says that
    no word of the question matched, and the files were found by their vectors.
    """

    files: list[RankedFile]
    entries: Mapping[int, Entry]
    names: Sequence[NameMatch] = ()
    parts: int = 1
    is_only_near: bool = False


class Ranker(Struct, eq=False):
    """Ranks files by the index; caches the history signals of each workspace.

    `aids` returns the parts of the search that the user's models take at the moment.
    """

    engine: ContextEngine
    aids: Callable[[], ModelAids] = ModelAids
    _signals_of_workspace: dict[int, tuple[str, HistorySignals]] = {}

    async def wait_until_indexed(self, seconds: float) -> None:
        """Wait at most `seconds` for pending files; not at all for 50 or more."""
        if 0 < self.engine.indexer.open_tasks < _MAX_FILES_TO_AWAIT:
            await self.engine.uploads.wait_until_indexed(seconds)

    async def rank(
        self,
        question: str,
        query: Query,
        scope: Scope,
        *,
        may_wait: bool = False,
        patience: float = _ONLY_VECTOR_SECONDS,
    ) -> Ranking:
        """Rank the files of a scope by words, and by the user's models.

        `query` is the result of `parse_query(question)`. The models that a chat should
        not wait for are asked only if the caller `may_wait`: the one that reranks
        files, and the one that names words of code for a question in English. If no
        word matches, the vector of the question may take `patience` seconds; with 0
        nothing is found.

        Raises:
            IndexFailed: the index cannot be searched.
        """
        aids = self.aids()
        parts = [parse_query(part) for part in split_parts(question)]
        parts = [part for part in parts if not part.only_task_words]
        if len(parts) == 1:  # a question that asks one thing only
            parts = []
        if not aids.has_models and not parts:
            return await asyncio.to_thread(self.rank_by_words, query, scope)
        whole = None
        if aids.has_models:
            whole = await self._rank_with_models(
                aids, question, query, scope, may_wait=may_wait, patience=patience
            )
        if whole is not None and not parts:
            return whole
        return await asyncio.to_thread(self._rank_parts, parts, whole, scope)

    def rank_by_words(self, query: Query, scope: Scope) -> Ranking:
        """Rank the files of a scope without any model; blocks for milliseconds.

        Raises:
            IndexFailed: the index cannot be searched.
        """
        return self._rank(query, self._search(query, scope), scope)

    def _rank_parts(
        self, parts: Sequence[Query], whole: Ranking | None, scope: Scope
    ) -> Ranking:
        """Rank by words the files for several questions that were asked at once.

        `whole` is the ranking with models for all of them together, if there are any.
        """
        rankings = []
        for query in parts:
            hits = self._search(query, scope, CANDIDATES // 2)
            rankings.append(self._rank(query, hits, scope))
        files = join_rankings(
            [ranking.files for ranking in rankings], whole.files if whole else ()
        )
        entries = _Entries(self.engine.contents, ())
        for ranking in (*rankings, *([whole] if whole else ())):
            entries.update(ranking.entries)
        matches = (match for ranking in rankings for match in ranking.names)
        names = {match.question.name: match for match in matches}
        is_only_near = whole is not None and whole.is_only_near
        return Ranking(files, entries, tuple(names.values()), len(parts), is_only_near)

    async def _rank_with_models(
        self,
        aids: ModelAids,
        question: str,
        query: Query,
        scope: Scope,
        *,
        may_wait: bool,
        patience: float,
    ) -> Ranking:
        vector = None
        if query.terms:
            has_meaning = not query.only_stop_words
        else:  # words that are not indexed, or punctuation alone
            has_meaning = any(map(str.isalpha, question))
        if aids.vectors is not None and has_meaning:
            vector = asyncio.ensure_future(aids.vectors.begin(question))
        try:
            if aids.words is not None:
                query = await aids.words(
                    question,
                    query,
                    lambda: not may_wait or self._has_most_words(query, scope),
                )
            hits = await asyncio.to_thread(self._search, query, scope)
            seconds = _VECTOR_SECONDS if hits else patience
            near = None
            if vector and seconds:
                near = await _find_near(vector, hits, scope, seconds)
            ranking = await asyncio.to_thread(self._rank, query, hits, scope, near)
        finally:
            if vector is not None:
                vector.cancel()
        if may_wait and aids.rerank is not None:
            read = partial(self._read_chunks, ranking.entries)
            files = await aids.rerank(question, query, ranking.files, read)
            ranking = ranking._replace(files=files)
        return ranking

    def _has_most_words(self, query: Query, scope: Scope) -> bool:
        """Tell whether one chunk has most of the words of a question; blocks.

        Every word occurs somewhere, everyday words too, but in different chunks. In the
        best chunk for all of them, everyday words reach a third of the sum of their
        best single scores, words of code two thirds.
        """
        index = self.engine.store.index
        together = index.search(query.terms, scope.view, 1)
        alone = [
            hit.score
            for term, weight in query.terms.items()
            for hit in index.search({term: weight}, scope.view, 1)
        ]
        return bool(together) and together[0].score >= _MIN_JOINT_SHARE * sum(alone)

    def _search(
        self, query: Query, scope: Scope, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return the chunks that match; none if only task words match.

        They are searched for again with related words that the best of them contain.
        """
        index = self.engine.store.index
        telling = [term for term in query.terms if term not in TASK_WORDS]
        if telling and not any(index.search({t: 1.0}, scope.view, 1) for t in telling):
            return []
        terms = dict(query.terms)
        if not (query.only_stop_words or query.identifier or query.names):
            best = index.search(query.terms, scope.view, _FEEDBACK_CHUNKS)
            terms |= find_related_words(query, self._lines_of(best), index.share_of)
        return index.search(terms, scope.view, limit)

    def _lines_of(
        self, chunks: Sequence[ChunkScore]
    ) -> Iterator[tuple[float, list[str]]]:
        """Yield the scores and lines of the chunks that can be read."""
        contents = self.engine.contents
        entries = contents.entries({chunk.blob_id for chunk in chunks})
        lines = {
            blob_id: contents.lines_of(entry) for blob_id, entry in entries.items()
        }
        for blob_id, ordinal, score in chunks:
            text = lines.get(blob_id)
            if text and ordinal < len(entries[blob_id].spans):
                span = entries[blob_id].spans[ordinal]
                yield score, text[span.first : span.last + 1]

    def _rank(
        self,
        query: Query,
        hits: Sequence[ChunkScore],
        scope: Scope,
        near: NearChunks | None = None,
    ) -> Ranking:
        near_ids = {chunk.blob_id for chunk in near.nearest} if near else set[int]()
        defining = self._find_definitions(query.identifier, scope)
        names = self._find_names(query, hits, scope)
        marked = [chunk for match in names for chunk in (*match.defining, *match.using)]
        blob_ids = {hit.blob_id for hit in (*hits, *defining, *marked)} | near_ids
        entries = _Entries(self.engine.contents, blob_ids)

        def file_of_blob(blob_id: int) -> FileEntry | None:
            entry = entries.get(blob_id)
            if entry is None:
                return None
            return FileEntry(blob_id, scope.path_of(entry), kind_of(entry.path))

        def file_of_path(path: str) -> FileEntry | None:
            blob_id = scope.blob_of(path)
            return FileEntry(blob_id, path, kind_of(path)) if blob_id else None

        signals = self._history_signals(scope)
        limit = MAX_RANKED_FILES if near is None else CANDIDATES
        files = rank(
            hits,
            file_of_blob,
            query,
            signals,
            file_of_path,
            defining=defining,
            names=names,
            limit=limit,
        )
        if near is not None:
            files = fuse(files, near, file_of_blob, query.kinds)
        matches = [_add_paths(match, file_of_blob) for match in names]
        return Ranking(files, entries, matches, is_only_near=bool(near and not hits))

    def _find_names(
        self, query: Query, hits: Sequence[ChunkScore], scope: Scope
    ) -> list[NameMatch]:
        """Return the names of the question that the index knows.

        One that could be an ordinary word counts as a name only if it is defined and
        used.
        """
        matches = [self._find_name(question, hits, scope) for question in query.names]
        return [
            match
            for match in matches
            if (match.defining and match.using)
            or (
                not match.question.is_plain
                and (match.defining or match.using or match.is_reference_search)
            )
        ]

    def _find_name(
        self, question: NameQuestion, hits: Sequence[ChunkScore], scope: Scope
    ) -> NameMatch:
        marks = {exact_mark(NameKind.BASE, question.name): 1.0}
        if question.intent is not NameIntent.IMPLEMENTATIONS:
            marks[exact_mark(NameKind.USED, question.name)] = 1.0
        using = self.engine.store.index.find_marked(marks, scope.view, _MAX_USES)
        defining = self._find_definitions(question.name, scope)
        if question.intent is NameIntent.IMPLEMENTATIONS:  # types, where there are any
            best = defining[0].score if defining else 0.0
            defining = [chunk for chunk in defining if chunk.score == best]
        is_cut = len(using) == _MAX_USES
        methods: tuple[str, ...] = ()
        if question.intent is NameIntent.USES and not is_cut:
            using += self._find_compound_uses(question.name, {*defining, *using}, scope)
        elif question.intent is NameIntent.IMPLEMENTATIONS and defining:
            # In Go, a type names an interface that it embeds, but not one that it
            # implements.
            methods = self._interface_methods(question.name, defining[0])
            known = {chunk.blob_id for chunk in using}
            having = self._find_methods(methods, scope, besides=defining[0].blob_id)
            using += [chunk for chunk in having if chunk.blob_id not in known]
        score = {hit[:2]: hit.score for hit in hits}
        # Of very many uses, those are ranked that match the question best.
        best_first = sorted(using, key=lambda chunk: -score.get(chunk[:2], 0.0))
        ranked = best_first[:_MAX_RANKED_USES]
        files = len({chunk.blob_id for chunk in using})
        return NameMatch(question, defining, ranked, files, is_cut, methods)

    def _find_compound_uses(
        self, name: str, known: Iterable[ChunkScore], scope: Scope
    ) -> list[ChunkScore]:
        """Return chunks of code with a name of several words, besides `known` ones.

        They use it in other ways than a call: as a constant, as an argument, in a macro
        or in a comment.
        """
        whole = {term: 1.0 for term in terms(name) if term.startswith(COMPOUND)}
        seen = {chunk[:2] for chunk in known}
        chunks = self.engine.store.index.search(whole, scope.view, _MAX_COMPOUND_USES)
        chunks = [chunk for chunk in chunks if chunk[:2] not in seen]
        entries = self.engine.contents.entries({chunk.blob_id for chunk in chunks})
        kinds = {blob_id: kind_of(entry.path) for blob_id, entry in entries.items()}
        return [
            chunk for chunk in chunks if kinds.get(chunk.blob_id) not in _NON_CODE_KINDS
        ]

    def _interface_methods(self, name: str, defining: ChunkScore) -> tuple[str, ...]:
        """Return the methods of an interface in Go; () in other languages."""
        entry = self.engine.contents.entries([defining.blob_id])[defining.blob_id]
        if not entry.path.endswith(".go"):
            return ()
        text = "\n".join(self.engine.contents.lines_of(entry) or ())
        return methods_of_interface(name, text)

    def _find_methods(
        self, methods: Sequence[str], scope: Scope, besides: int
    ) -> list[ChunkScore]:
        """Return chunks that define the first method, of files that define all."""
        if not methods:
            return []
        index = self.engine.store.index
        chunks_by_method = [
            index.find_marked(
                {exact_mark(NameKind.FUNCTION, method): 1.0}, scope.view, _MAX_USES
            )
            for method in methods
        ]
        blobs = ({chunk.blob_id for chunk in chunks} for chunks in chunks_by_method)
        with_all = set.intersection(*blobs) - {besides}
        return [chunk for chunk in chunks_by_method[0] if chunk.blob_id in with_all]

    def _find_definitions(self, name: str, scope: Scope) -> list[ChunkScore]:
        """Return chunks that define a name, best first.

        If too many define it, the worst ones are left out: they tell nothing.
        """
        if not name:
            return []
        marks = definition_marks(name)
        chunks = self.engine.store.index.find_marked(
            marks, scope.view, _MAX_DEFINITIONS
        )
        if len(chunks) < _MAX_DEFINITIONS:
            return chunks
        return [chunk for chunk in chunks if chunk.score > chunks[-1].score]

    def _read_chunks(
        self, entries: Mapping[int, Entry], file: RankedFile
    ) -> list[list[str]]:
        """Return the masked lines of a file's best chunks (`model_aids.ReadChunks`)."""
        entry = entries[file.blob_id]
        lines = self.engine.contents.lines_of(entry)
        if lines is None:
            return []
        best = [chunk.ordinal for chunk in file.chunks[:_RERANKED_CHUNKS]] or [0]
        spans = [entry.spans[n] for n in best if n < len(entry.spans)]
        return [mask_lines(lines, s.first, s.last, path=entry.path) for s in spans]

    def _history_signals(self, scope: Scope) -> JoinedHistorySignals:
        """Return the history signals, which are built again only after a new commit."""
        parts: dict[str, HistorySignals] = {}
        for space in scope.workspaces:
            history = self.engine.history_of(space)
            if history is None or not space.status.was_complete:
                continue  # signals of half of the files would be cached
            cached = self._signals_of_workspace.get(space.id)
            if cached is None or cached[0] != history.head:
                cached = (history.head, HistorySignals(history, space.paths()))
                self._signals_of_workspace[space.id] = cached
            parts[scope.prefix_of(space)] = cached[1]
        return JoinedHistorySignals(parts)


class _Entries(dict[int, Entry]):
    """Index entries by blob id; missing ones are read on first use."""

    def __init__(self, contents: Contents, blob_ids: Iterable[int]) -> None:
        super().__init__(contents.entries(blob_ids))
        self._contents = contents

    def __missing__(self, blob_id: int) -> Entry:
        entry = self._contents.entries([blob_id]).get(blob_id)
        # A blob may have been removed meanwhile; then nothing of it is shown.
        self[blob_id] = entry or Entry(blob_id, "", b"")
        return self[blob_id]


def find_related_words(
    query: Query,
    chunks: Iterable[tuple[float, Sequence[str]]],
    share_of: Callable[[str], float],
) -> dict[str, float]:
    """Return the weights of words that distinguish the best chunks from other code.

    This is pseudo-relevance feedback. The right code may have only one word of a
    question, like much other code. So the best chunks are searched for words that they
    have in common and that are rare elsewhere, and the search is repeated with these
    words too, at a low weight. In an index of few chunks no word is rare, and nothing
    is added.

    `chunks` are their scores and lines; `share_of` returns the share of all chunks that
    have a word.
    """
    frequency = defaultdict[str, float](float)
    for score, lines in chunks:
        counts = Counter(join_terms("\n".join(lines)).split())
        length = counts.total()
        for term, count in counts.items():
            frequency[term] += score * count / length
    excluded = STOP_WORDS | TASK_WORDS | query.terms.keys()
    candidates = [
        term
        for term in frequency  # in a fixed order, which decides between equals
        if term not in excluded
        and len(term) >= _MIN_RELATED_CHARS
        and term[0] != COMPOUND
    ]
    value = {
        term: frequency[term] * -math.log(share)
        for term in nlargest(
            _MAX_RELATED_CANDIDATES, candidates, key=frequency.__getitem__
        )
        if 0 < (share := share_of(term)) < _MAX_RELATED_SHARE
    }
    best = nlargest(_MAX_RELATED_WORDS, value, key=value.__getitem__)
    return {term: _RELATED_WEIGHT * value[term] / value[best[0]] for term in best}


async def _find_near(
    vector: "asyncio.Future[FindNear | None]",
    hits: Sequence[ChunkScore],
    scope: Scope,
    seconds: float,
) -> NearChunks | None:
    """Return the chunks near to a question; None if its vector comes too late."""
    try:
        async with asyncio.timeout(seconds):
            find = await vector
        if find is None:
            return None
        async with asyncio.timeout(_SCAN_SECONDS):
            best_first = dict.fromkeys(hit.blob_id for hit in hits)
            return await find(scope.view, best_first)
    except TimeoutError:
        return None


def _add_paths(
    match: NameMatch, file_of_blob: Callable[[int], FileEntry | None]
) -> NameMatch:
    """Return a match with the paths of the files that define and use the name."""

    def paths(chunks: Iterable[ChunkScore]) -> dict[int, str]:
        blobs = dict.fromkeys(chunk.blob_id for chunk in chunks)
        entries = [entry for blob in blobs if (entry := file_of_blob(blob)) is not None]
        return {entry.blob_id: entry.path for entry in entries}

    return match._replace(defined_in=paths(match.defining), paths=paths(match.using))


def fuse(
    files: Sequence[RankedFile],
    near: NearChunks,
    file_of_blob: Callable[[int], FileEntry | None],
    kinds: Mapping[Kind, float] = NO_KINDS,
) -> list[RankedFile]:
    """Join files found by words with chunks that are near by their vectors.

        score = score by words
                + 0.3 x best score by words of all files
                  x nearness of the file's nearest chunk x factor of its kind

    The nearness of a chunk is 0 for the farthest candidate and 1 for the nearest one:
    the cosines of some models all lie between 0.7 and 0.9. Scores are added, not ranks:
    rank fusion gives both lists the same weight, and made answers worse
    (docs/reference/retrieval.md).

    Vectors may still be missing, of a file that was just saved or of most of a
    workspace. A matching file without one counts as near as those with one do on
    average, so that it neither gains nor loses. If most have none, words alone decide.

    `kinds` are the least factors of kinds. `file_of_blob` returns None for a blob that
    is no file of the view, which is left out. Equal scores are ordered by path.
    """
    near_chunks = _nearness_by_blob(near)
    uncovered = [  # matching files that should have a vector, and have none yet
        file
        for file in files
        if file.chunks
        and file.kind in _EMBEDDED_KINDS
        and file.blob_id not in near_chunks
    ]
    covered = [file for file in files if file.chunks and file.blob_id in near_chunks]
    if len(covered) < _MIN_COVERED_SHARE * (len(covered) + len(uncovered)):
        return list(files[:_MAX_FUSED_FILES])
    best = max((file.score for file in files), default=0.0) or 1.0
    weight = _NEARNESS_WEIGHT * best
    fused = {file.path: file for file in files}
    for blob_id, chunks in near_chunks.items():
        entry = file_of_blob(blob_id)
        if entry is None:
            continue
        file = fused.get(entry.path)
        if file is None:  # no word of the question is in it
            reasons = Reasons(0.0, 0.0, 0.0, kind_factor(entry.kind, kinds), 0.0)
            file = RankedFile(*entry, 0.0, (), reasons)
        if file.blob_id == blob_id:
            file = replace(file, chunks=_join_chunks(file.chunks, chunks))
            fused[entry.path] = _raise_score(file, weight * chunks[0].score)
    if uncovered:
        average = fmean(near_chunks[file.blob_id][0].score for file in covered)
        fused |= {file.path: _raise_score(file, weight * average) for file in uncovered}
    ordered = sorted(fused.values(), key=lambda file: (-file.score, file.path))
    return [file for file in ordered[:_MAX_FUSED_FILES] if file.score > 0]


def _nearness_by_blob(near: NearChunks) -> Mapping[int, Sequence[ChunkScore]]:
    """Return the near chunks by blob id, nearest first; scores from 0 to 1."""
    candidates = {chunk[:2]: chunk for chunk in (*near.nearest, *near.best.values())}
    cosines = [chunk.score for chunk in candidates.values()]
    low, high = min(cosines, default=0.0), max(cosines, default=0.0)
    by_blob: dict[int, list[ChunkScore]] = defaultdict(list)
    for chunk in candidates.values():
        nearness = (chunk.score - low) / (high - low) if high > low else 1.0
        by_blob[chunk.blob_id].append(chunk._replace(score=nearness))
    return {blob_id: _best_first(chunks) for blob_id, chunks in by_blob.items()}


def _raise_score(file: RankedFile, gain: float) -> RankedFile:
    """Return the file with the gain of its nearness added to its score."""
    gain *= file.reasons.kind
    return replace(file, score=file.score + gain, vector=gain)


def _join_chunks(
    matching: Sequence[ChunkScore], near: Sequence[ChunkScore]
) -> tuple[ChunkScore, ...]:
    """Return all chunks of one file, best first, on the scale of the matching ones."""
    if not matching:
        return tuple(near)
    scale = _NEARNESS_WEIGHT_IN_FILE * matching[0].score
    joined = {chunk.ordinal: chunk for chunk in matching}
    for chunk in near:
        score = scale * chunk.score
        if chunk.ordinal in joined:
            score += joined[chunk.ordinal].score
        joined[chunk.ordinal] = chunk._replace(score=score)
    return tuple(_best_first(joined.values()))


def _best_first(chunks: Iterable[ChunkScore]) -> list[ChunkScore]:
    return sorted(chunks, key=lambda chunk: (-chunk.score, chunk.ordinal))
