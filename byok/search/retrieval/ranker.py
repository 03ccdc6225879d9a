"""Search the index for a scope, and rank files by words, vectors and history."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from byok.search.index.contents import Contents, Entry
from byok.search.index.engine import ContextEngine
from byok.search.index.files.languages import kind_of
from byok.search.index.parse.prepare import NameKind, exact_mark
from byok.search.index.parse.tokens import COMPOUND, terms
from byok.search.index.store.chunk_index import CANDIDATES, ChunkScore
from byok.search.index.types import Kind
from byok.search.retrieval.feedback import READ, find_related_words
from byok.search.retrieval.masking import mask_lines
from byok.search.retrieval.model_aids import FindNear, ModelAids, NearChunks
from byok.search.retrieval.names import (
    NameIntent,
    NameMatch,
    NameQuestion,
    definition_marks,
    methods_of_interface,
    reference_marks,
)
from byok.search.retrieval.parts import join_rankings, split_parts
from byok.search.retrieval.query import TASK_WORDS, Query, parse_query
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

# Join what was found by words and what is near by vectors.
#
#     score = score by words
#             + 0.3 x best score by words of all files
#               x nearness of the file's nearest chunk x factor of its kind
#
# The nearness of a chunk is 0 for the farthest candidate and 1 for the nearest one:
# cosines of some models lie all between 0.7 and 0.9. Scores are added and not ranks: a
# fusion of ranks, which gives both lists the same weight, made answers worse
# (docs/reference/retrieval.md).
#
# Vectors may still be missing, of a file that was just saved or of most of a workspace.
# A file that matches and has none counts as near as those that have one do on average,
# so that it neither gains nor loses. Where most have none, words alone decide.


_WEIGHT = 0.3
# What the nearness of a chunk counts beside its share of the best score in its file.
_CHUNK_WEIGHT = 0.5
_MOST_FILES = 100
_EMBEDDED = frozenset({Kind.CODE, Kind.CONF})
_LEAST_COVERED = 0.5


def fuse(
    files: Sequence[RankedFile],
    near: NearChunks,
    file_of_blob: Callable[[int], FileEntry | None],
    kinds: Mapping[Kind, float] = NO_KINDS,
) -> list[RankedFile]:
    """Return the files in the order of both, best first; equal scores by path.

    `files` are those found by words, `kinds` the least factors of kinds.
    `by_blob` returns None for what is no file of the view; that is left out.
    """
    found = _by_blob(near)
    waiting = [file for file in files if _lacks_vector(file, found)]
    covered = [file for file in files if file.chunks and file.blob_id in found]
    if len(covered) < _LEAST_COVERED * (len(covered) + len(waiting)):
        return list(files[:_MOST_FILES])
    worth = _WEIGHT * (max((file.score for file in files), default=0.0) or 1.0)
    fused = {file.path: file for file in files}
    for blob_id, chunks in found.items():
        entry = file_of_blob(blob_id)
        if entry is None:
            continue
        file = fused.get(entry.path) or _make_file(entry, kinds)
        if file.blob_id == blob_id:
            file = replace(file, chunks=_join(file.chunks, chunks))
            fused[entry.path] = _add(file, worth * chunks[0].score)
    if waiting:
        usual = fmean(found[file.blob_id][0].score for file in covered)
        fused |= {file.path: _add(file, worth * usual) for file in waiting}
    ordered = sorted(fused.values(), key=lambda file: (-file.score, file.path))
    return [file for file in ordered[:_MOST_FILES] if file.score > 0]


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


def _make_file(entry: FileEntry, kinds: Mapping[Kind, float]) -> RankedFile:
    """Return a file that no word found."""
    reasons = Reasons(0.0, 0.0, 0.0, kind_factor(entry.kind, kinds), 0.0)
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


_FEW = 50
_MANY = 100  # definitions of one name
_NO_CODE = (Kind.DOC, Kind.CONF, Kind.GEN, None)
_RANKED_USES = 200  # of these, chunks whose files are ranked
_MOST_USES = 1_000  # chunks with uses of one name that are counted
# Seconds to wait for the vector of a question; without any match there is more time.
_VECTOR_SECONDS, _ONLY_VECTOR_SECONDS = 0.4, 5.0
_SCAN_SECONDS = 2.0  # to find what is near to it; it takes a few milliseconds
_SAID = 0.45  # of the scores of words alone (docs/reference/retrieval.md)
_SHOWN_CHUNKS = 3  # of a file, to a model that orders files


class Ranking(NamedTuple):
    """Ranked files, best first, index entries by blob id, and names of the question.

    `parts` is how many questions it is; `is_only_near` tells that no word of it is in
    the files, which vectors found.
    """

    files: list[RankedFile]
    entries: Mapping[int, Entry]
    names: Sequence[NameMatch] = ()
    parts: int = 1
    is_only_near: bool = False


class Ranker:
    """Ranks files by the index; keeps the history signals of each workspace.

    `aids` returns what the user's models may add at the moment.
    """

    def __init__(
        self, engine: ContextEngine, aids: Callable[[], ModelAids] = ModelAids
    ) -> None:
        self._engine = engine
        self._aids = aids
        self._signals: dict[int, tuple[str, HistorySignals]] = {}

    async def wait_until_indexed(self, seconds: float) -> None:
        """Wait at most `seconds` for pending files; not at all for 50 or more."""
        if 0 < self._engine.indexer.open_tasks < _FEW:
            await self._engine.uploads.wait_until_indexed(seconds)

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

        Of these, those that a chat with its first word should not wait for are asked
        only if the caller `may_wait`: what orders files, and what names words of code
        for a question in English. `query` is what `parse_query` makes of the question.
        Where no word matches, the vector of the question may take `patience` seconds;
        with 0 nothing is found.

        Raises:
            IndexFailed: the index cannot be searched.
        """
        aids = self._aids()
        parts = _parts_of(question)
        if not aids.has_models and not parts:
            return await asyncio.to_thread(self.rank_by_words, query, scope)
        whole = None
        if aids.has_models:
            whole = await self._rank_with(
                aids, question, query, scope, may_wait=may_wait, patience=patience
            )
        if whole is not None and not parts:
            return whole
        return await asyncio.to_thread(self._rank_parts, parts, whole, scope)

    def _rank_parts(
        self, parts: Sequence[Query], whole: Ranking | None, scope: Scope
    ) -> Ranking:
        """Rank what several questions find that were asked at once, by words.

        With what models find for all of them together, where they were asked.
        """
        found = []
        for query in parts:
            hits = self._search(query, scope, CANDIDATES // 2)
            found.append(self._rank(query, hits, scope))
        files = join_rankings(
            [one.files for one in found], whole.files if whole else ()
        )
        entries = _Entries(self._engine.contents, ())
        for one in (*found, *([whole] if whole else ())):
            entries.update(one.entries)
        names = {name.question.name: name for one in found for name in one.names}
        is_only_near = whole is not None and whole.is_only_near
        names_found = tuple(names.values())
        return Ranking(files, entries, names_found, len(parts), is_only_near)

    async def _rank_with(
        self,
        aids: ModelAids,
        question: str,
        query: Query,
        scope: Scope,
        *,
        may_wait: bool,
        patience: float,
    ) -> Ranking:
        """Rank the files of a scope by words, and by the user's models."""
        vector = None
        if aids.vectors is not None and _says_something(question, query):
            vector = asyncio.ensure_future(aids.vectors.begin(question))
        try:
            if aids.words is not None:
                query = await aids.words(
                    question,
                    query,
                    lambda: not may_wait or self._is_said(query, scope),
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

    def rank_by_words(self, query: Query, scope: Scope) -> Ranking:
        """Rank the files of a scope without any model; blocks for milliseconds.

        Raises:
            IndexFailed: the index cannot be searched.
        """
        return self._rank(query, self._search(query, scope), scope)

    def _is_said(self, query: Query, scope: Scope) -> bool:
        """Tell whether one piece of code has much of what a question says.

        Each word is somewhere, everyday words too, but far from each other: in one
        piece they reach a third of what each of them reaches where it counts most,
        words of code two thirds. Blocks.
        """
        index = self._engine.store.index
        together = index.search(query.terms, scope.view, 1)
        alone = [
            hit.score
            for term, weight in query.terms.items()
            for hit in index.search({term: weight}, scope.view, 1)
        ]
        return bool(together) and together[0].score >= _SAID * sum(alone)

    def _search(
        self, query: Query, scope: Scope, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return the chunks that match; none if they have words of tasks only.

        They are searched for once more with what the best of them say.
        """
        index = self._engine.store.index
        telling = [term for term in query.terms if term not in TASK_WORDS]
        if telling and not any(index.search({t: 1.0}, scope.view, 1) for t in telling):
            return []
        found = dict(query.terms)
        if not (query.only_stop_words or query.identifier or query.names):
            best = index.search(query.terms, scope.view, READ)
            found |= find_related_words(query, self._lines_of(best), index.share_of)
        return index.search(found, scope.view, limit)

    def _lines_of(
        self, chunks: Sequence[ChunkScore]
    ) -> Iterator[tuple[float, list[str]]]:
        """Yield the scores and lines of chunks, of those that can be read."""
        contents = self._engine.contents
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
        marked = [chunk for one in names for chunk in (*one.defining, *one.using)]
        found = {hit.blob_id for hit in (*hits, *defining, *marked)} | near_ids
        entries = _Entries(self._engine.contents, found)

        def file_of_blob(blob_id: int) -> FileEntry | None:
            entry = entries.get(blob_id)
            if entry is None:
                return None
            return FileEntry(blob_id, scope.path_of(entry), kind_of(entry.path))

        def file_of_path(path: str) -> FileEntry | None:
            blob_id = scope.blob_of(path)
            return FileEntry(blob_id, path, kind_of(path)) if blob_id else None

        signals = self._signals_of(scope)
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
        found_names = [_with_paths(one, file_of_blob) for one in names]
        return Ranking(
            files, entries, found_names, is_only_near=bool(near and not hits)
        )

    def _find_names(
        self, query: Query, hits: Sequence[ChunkScore], scope: Scope
    ) -> list[NameMatch]:
        """Return the names of the question that the index knows.

        What is asked about a name that may be a word is asked about a name only if
        something of that name is defined and used.
        """
        found = [self._find_name(asked, hits, scope) for asked in query.names]
        return [
            one
            for one in found
            if (one.defining and one.using)
            or (
                not one.question.is_plain
                and (one.defining or one.using or one.is_reference_search)
            )
        ]

    def _find_name(
        self, asked: NameQuestion, hits: Sequence[ChunkScore], scope: Scope
    ) -> NameMatch:
        marks = reference_marks(asked.name, asked.intent)
        using = self._engine.store.index.find_marked(marks, scope.view, _MOST_USES)
        defining = self._find_definitions(asked.name, scope)
        if asked.intent is NameIntent.IMPLEMENTATIONS:  # types, where there are any
            defining = [one for one in defining if one.score == defining[0].score]
        is_cut = len(using) == _MOST_USES
        methods: tuple[str, ...] = ()
        if asked.intent is NameIntent.USES and not is_cut:
            using += self._find_whole(asked.name, {*defining, *using}, scope)
        elif asked.intent is NameIntent.IMPLEMENTATIONS and defining:
            # In Go, what embeds an interface names it, and what implements it does not.
            methods = self._methods_of(asked.name, defining[0])
            known = {chunk.blob_id for chunk in using}
            having = self._find_methods(methods, scope, besides=defining[0].blob_id)
            using += [chunk for chunk in having if chunk.blob_id not in known]
        score = {hit[:2]: hit.score for hit in hits}
        # Of very many those are looked at that have most of the question.
        best = sorted(using, key=lambda chunk: -score.get(chunk[:2], 0.0))[
            :_RANKED_USES
        ]
        files = len({chunk.blob_id for chunk in using})
        return NameMatch(asked, defining, best, files, is_cut, methods)

    def _find_whole(
        self, name: str, known: Iterable[ChunkScore], scope: Scope
    ) -> list[ChunkScore]:
        """Return code that has a name of several words in another place than a call.

        Such as a constant, an argument, or a call in a macro. Comments are code here.
        """
        whole = {term: 1.0 for term in terms(name) if term.startswith(COMPOUND)}
        seen = {chunk[:2] for chunk in known}
        found = self._engine.store.index.search(whole, scope.view, _FEW)
        found = [chunk for chunk in found if chunk[:2] not in seen]
        entries = self._engine.contents.entries({chunk.blob_id for chunk in found})
        kinds = {blob_id: kind_of(entry.path) for blob_id, entry in entries.items()}
        return [chunk for chunk in found if kinds.get(chunk.blob_id) not in _NO_CODE]

    def _methods_of(self, name: str, defining: ChunkScore) -> tuple[str, ...]:
        """Return the methods of an interface of Go, where nothing says who has them."""
        entry = self._engine.contents.entries([defining.blob_id])[defining.blob_id]
        if not entry.path.endswith(".go"):
            return ()
        text = "\n".join(self._engine.contents.lines_of(entry) or ())
        return methods_of_interface(name, text)

    def _find_methods(
        self, methods: Sequence[str], scope: Scope, besides: int
    ) -> list[ChunkScore]:
        """Return chunks that define the first of some methods, in files with all."""
        found = [
            self._engine.store.index.find_marked(
                {exact_mark(NameKind.FUNCTION, method): 1.0}, scope.view, _MOST_USES
            )
            for method in methods
        ]
        blobs = [{chunk.blob_id for chunk in chunks} for chunks in found]
        everywhere = set.intersection(*blobs) - {besides} if blobs else set()
        return (
            [chunk for chunk in found[0] if chunk.blob_id in everywhere]
            if found
            else []
        )

    def _find_definitions(self, name: str, scope: Scope) -> list[ChunkScore]:
        """Return chunks that define a name, best first.

        What too many chunks define says nothing about any of them.
        """
        if not name:
            return []
        marks = definition_marks(name)
        found = self._engine.store.index.find_marked(marks, scope.view, _MANY)
        if len(found) < _MANY:
            return found
        return [chunk for chunk in found if chunk.score > found[-1].score]

    def _read_chunks(
        self, entries: Mapping[int, Entry], file: RankedFile
    ) -> list[list[str]]:
        """Return the lines of a file's best chunks; see `model_aids.ReadChunks`."""
        entry = entries[file.blob_id]
        lines = self._engine.contents.lines_of(entry)
        if lines is None:
            return []
        best = [chunk.ordinal for chunk in file.chunks[:_SHOWN_CHUNKS]] or [0]
        spans = [entry.spans[n] for n in best if n < len(entry.spans)]
        return [mask_lines(lines, s.first, s.last, path=entry.path) for s in spans]

    def _signals_of(self, scope: Scope) -> JoinedHistorySignals:
        """Return the history signals; built again only after a new commit."""
        parts: dict[str, HistorySignals] = {}
        for space in scope.workspaces:
            history = self._engine.history_of(space)
            if history is None or not space.status.was_complete:
                continue  # signals are kept, and half of the files would be missing
            known = self._signals.get(space.id)
            if known is None or known[0] != history.head:
                known = (history.head, HistorySignals(history, space.paths()))
                self._signals[space.id] = known
            parts[scope.prefix_of(space)] = known[1]
        return JoinedHistorySignals(parts)


def _parts_of(question: str) -> list[Query]:
    """Return the questions that are asked at once; none if it is one."""
    parts = [parse_query(part) for part in split_parts(question)]
    parts = [part for part in parts if not part.only_task_words]
    return parts if len(parts) > 1 else []


def _with_paths(
    found: NameMatch, file_of_blob: Callable[[int], FileEntry | None]
) -> NameMatch:
    """Return what is known of a name with the paths of the files."""

    def paths(chunks: Iterable[ChunkScore]) -> dict[int, str]:
        blobs = dict.fromkeys(chunk.blob_id for chunk in chunks)
        entries = [entry for blob in blobs if (entry := file_of_blob(blob)) is not None]
        return {entry.blob_id: entry.path for entry in entries}

    return found._replace(defined_in=paths(found.defining), paths=paths(found.using))


def _says_something(question: str, query: Query) -> bool:
    """Tell whether a question is more than stop words or signs."""
    if query.terms:
        return not query.only_stop_words
    return any(map(str.isalpha, question))


async def _find_near(
    vector: "asyncio.Future[FindNear | None]",
    hits: Sequence[ChunkScore],
    scope: Scope,
    seconds: float,
) -> NearChunks | None:
    """Return the chunks near to a question, if its vector comes in time."""
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


class _Entries(dict[int, Entry]):
    """Index entries by blob id; those not found by text are read on first use."""

    def __init__(self, contents: Contents, blob_ids: Iterable[int]) -> None:
        super().__init__(contents.entries(blob_ids))
        self._contents = contents

    def __missing__(self, blob_id: int) -> Entry:
        found = self._contents.entries([blob_id]).get(blob_id)
        # It may have been removed meanwhile; then nothing of it is shown.
        self[blob_id] = found or Entry(blob_id, "", b"")
        return self[blob_id]
