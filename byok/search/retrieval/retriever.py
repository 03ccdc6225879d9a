"""Answer a retrieval request: select the scope, search it, and write the text."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from byok.core.code_query import BlobNames, Retrieval, RetrievalRequest, SearchMode
from byok.core.errors import IndexFailed
from byok.core.escapes import escape
from byok.search.index.contents import Entry
from byok.search.index.engine import ContextEngine
from byok.search.index.files.languages import kind_of
from byok.search.index.parse.tokens import terms
from byok.search.index.types import Commit, Phase
from byok.search.index.workspace.workspace import Workspace
from byok.search.retrieval import excerpts
from byok.search.retrieval import query as queries
from byok.search.retrieval.excerpts import CurrentFiles, find_terms
from byok.search.retrieval.masking import mask_lines
from byok.search.retrieval.model_aids import ModelAids, RemoteAnswer
from byok.search.retrieval.names import NameIntent, NameQuestion, identifier_of
from byok.search.retrieval.pack import (
    MAX_CODE_FILES,
    PackedAnswer,
    pack,
    pack_glimpses,
    remove_copies,
)
from byok.search.retrieval.rank import RankedFile
from byok.search.retrieval.ranker import Ranker, Ranking
from byok.search.retrieval.render import (
    ALL_FILES,
    FILES_FOUND,
    HEADING,
    copy_note,
    render,
)
from byok.search.retrieval.ripgrep import ASK_IN_ENGLISH, Ripgrep
from byok.search.retrieval.scope import (
    Scope,
    empty_answer,
    outer_workspaces,
    remove_roots,
    select_scope,
    stale_notes,
)
from byok.search.retrieval.uses import MAX_NAME_FILES, pack_uses

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 1.0  # to wait for files that were just saved to be indexed
_MAX_LISTED_FILES = 16  # of a scope in which nothing matches
# Something is near to any word, even to `xyzzy`: for fewer words than this, files that
# are only near are shown by one line each.
_MIN_TERMS_FOR_CODE = 3
_ONLY_NEAR = (
    "No word of this question is in the code here: what follows is only near to it in "
    "meaning, and may have nothing to do with it."
)
_MAX_NAME_CHARS = 100
_NO_QUESTION = "missing information_request/query: say what to look for.\n"
_COMMITS_HEADING = "The following commits were retrieved:\n"
_NO_COMMITS = "No commit was found for this request (no matches).\n"
_MAX_COMMITS = 20
_MAX_PATHS = 8  # of a commit
_MAX_COMMIT_TIME = 253_402_300_799  # the end of the year 9999; git allows later times


class Retriever:
    """Searches with the index, or with ripgrep while the index cannot answer.

    `mode` can restrict it to one of the two.
    """

    def __init__(
        self,
        engine: ContextEngine,
        ripgrep: Ripgrep,
        mode: SearchMode = SearchMode.AUTO,
        aids: Callable[[], ModelAids] = ModelAids,
    ) -> None:
        self._engine = engine
        self._ripgrep = ripgrep
        self._mode = mode
        self._aids = aids
        self.ranker = Ranker(engine, aids)

    async def answer(self, request: RetrievalRequest) -> Retrieval:
        """Answer a request in the text layout that clients expect of their tool."""
        started = time.monotonic()
        length = request.length
        await self.ranker.wait_until_indexed(_SETTLE_SECONDS)
        scope = await select_scope(
            self._engine,
            request.blobs,
            request.roots,
            request.query,
            request.folders,
        )
        if request.symbol:
            text = await self._answer_symbol(request.symbol, scope, length)
            return Retrieval(text[:length], seconds=time.monotonic() - started)
        query = remove_roots(request.query, scope)
        has_question = bool(query.strip())
        parts: list[str] = [] if has_question else [_NO_QUESTION]
        if has_question and request.code:
            async with self._aids().ask_remote(query, scope) as task:
                parts.append(await self._answer_code(query, scope, length, task))
        elif has_question and not request.commits:
            parts.append("Code retrieval was disabled for this request.\n")
        if has_question and request.commits:
            remaining = length - len(parts[0]) - 1 if parts else length
            parts.append(await self._answer_commits(query, scope, remaining))
        return Retrieval(
            "\n".join(part for part in parts if part)[:length],
            scope.unknown,
            scope.checkpoint_found,
            time.monotonic() - started,
        )

    async def search(
        self,
        text: str,
        limit: int = 20,
        roots: Sequence[str] = (),
        *,
        lines: int = 0,
    ) -> dict[str, Any]:
        """Return `{"hits": [...], "notes": [...]}` for `byok search`.

        A hit has path, score, kind, the parts of its score and line ranges. A hit of
        the search server has repository and revision, but no file on this machine.
        ripgrep is not used; the notes say what the index lacks. With `lines`, a hit has
        that many lines of each chunk, and the answer has the `terms` of the search.
        """
        await self.ranker.wait_until_indexed(_SETTLE_SECONDS)
        scope = await select_scope(self._engine, BlobNames(), roots, text)
        problems = [*map(_progress_note, _workspaces_in_progress(scope.workspaces))]
        if index_error := self._engine.indexer.error:
            problems.append(f"Indexing failed, so hits may be missing: {index_error}")
        text = remove_roots(text, scope)
        query = await asyncio.to_thread(queries.parse_query, text)
        async with self._aids().ask_remote(text, scope) as remote_task:
            ranking = await self.ranker.rank(text, query, scope, may_wait=True)
            remote = await remote_task if remote_task else None
        ranked, entries, names = ranking[:3]
        current = CurrentFiles(self._engine.contents, entries, scope, query)
        best = await asyncio.to_thread(current.update, ranked[:limit], limit)
        hits = [_describe_hit(file, entries, scope, current) for file in best]
        notes = [*scope.notes, *current.notes(), *(problems or stale_notes(scope))]
        answer: dict[str, Any] = {"hits": hits, "notes": notes}
        if names:
            answer["names"] = [match.describe() for match in names]
        if lines:
            read = excerpts.lines_of_hits
            lines_by_hit = await asyncio.to_thread(read, best, current, query, lines)
            answer["terms"] = excerpts.describe_terms(query)
            for hit, lines_of_hit in zip(hits, lines_by_hit, strict=True):
                hit["lines"] = lines_of_hit
        if remote is not None:
            hits += await asyncio.to_thread(remote.describe, best, current, lines)
            hits.sort(key=lambda hit: -hit["score"])  # stable: local hits win ties
            del hits[limit:]
            notes += filter(None, [remote.note])
        return answer

    async def _answer_symbol(self, symbol: str, scope: Scope, length: int) -> str:
        """Answer with the definition of a name and the lines that use it only."""
        name = identifier_of(symbol)
        if not name:
            return f"{escape(symbol[:_MAX_NAME_CHARS])} is no name of code.\n"
        if not scope.workspaces:
            return empty_answer(scope)
        if not self._is_index_used(scope):
            return await self._answer_by_ripgrep(name, scope, length)
        query = await asyncio.to_thread(queries.parse_query, name)
        query = replace(query, names=(NameQuestion(name, NameIntent.USES),))
        ranking = await asyncio.to_thread(self.ranker.rank_by_words, query, scope)
        [match] = ranking.names
        blob_ids = {*match.defined_in, *match.paths}
        if not blob_ids:
            notes = [*scope.notes, *stale_notes(scope)]
            return "\n".join([escape(match.sentence), *notes])
        files = [file for file in ranking.files if file.blob_id in blob_ids]
        ranking = ranking._replace(files=files)
        return await asyncio.to_thread(self._write, ranking, query, scope, length)

    async def _answer_code(
        self,
        text: str,
        scope: Scope,
        length: int,
        remote_task: "asyncio.Task[RemoteAnswer] | None",
    ) -> str:
        """Answer from the workspaces, with hits of the search server below, if any."""
        by_index = self._is_index_used(scope)
        is_empty = not scope.view.ids and (
            scope.has_named_blobs or not scope.workspaces
        )
        if not is_empty and (by_index or not scope.workspaces):
            try:
                query = await asyncio.to_thread(queries.parse_query, text)
                ranking = await self.ranker.rank(text, query, scope, may_wait=True)
                if not ranking.files and not text.isascii():
                    scope.notes.append(ASK_IN_ENGLISH)
                remote = await remote_task if remote_task else None
                return await asyncio.to_thread(
                    self._write, ranking, query, scope, length, remote
                )
            except IndexFailed as error:
                _log.error("the index cannot be searched: %s", error)
                scope.notes.append(f"The index was not searched. {error.sentence}")
        below = ""
        if remote_task:
            remote = await remote_task
            below = await asyncio.to_thread(remote.write, (), None, length // 2)
        if is_empty or not scope.workspaces:
            return empty_answer(scope)[: length - len(below)] + below
        text = await self._answer_by_ripgrep(text, scope, length - len(below))
        return text + below

    def _is_index_used(self, scope: Scope) -> bool:
        if self._mode is SearchMode.AUTO:
            return scope.has_named_blobs or all(
                space.is_usable for space in scope.workspaces
            )
        return self._mode is SearchMode.INDEX

    def _write(
        self,
        ranking: Ranking,
        query: queries.Query,
        scope: Scope,
        length: int,
        remote: RemoteAnswer | None = None,
    ) -> str:
        ranked, entries, names, parts, _ = ranking
        current = CurrentFiles(self._engine.contents, entries, scope, query)
        sought = next((n for n in names if n.is_reference_search and n.paths), None)
        ranked, copies = remove_copies(ranked, current.spans_of, current.lines_of)
        ranked = current.update(ranked, MAX_NAME_FILES if sought else MAX_CODE_FILES)
        below = remote.write(ranked, current, length) if remote else ""
        length -= len(below)
        glimpse = partial(excerpts.glimpse, current=current, query=query)
        sentences = [
            *([_ONLY_NEAR] if ranking.is_only_near else ()),
            *(match.sentence for match in names),
        ]
        head = "".join(f"{escape(sentence)}\n" for sentence in sentences)
        if sought:
            packed = pack_uses(sought, ranked, current, length, glimpse, parts)
        elif ranking.is_only_near and len(query.terms) < _MIN_TERMS_FOR_CODE:
            packed = pack_glimpses(ranked, glimpse, length)
        else:
            packed = pack(ranked, current.spans_of, length, glimpse)
        if not ranked:
            packed = PackedAnswer((), self._all_paths(scope) if query.terms else ())
        elsewhere = _copy_notes(packed, entries, scope, copies)
        notes = [*scope.notes, *elsewhere, *current.notes(), *stale_notes(scope)]
        answer = render(
            packed,
            lambda file: current.lines_of(file.blob_id),
            length,
            notes,
            find=find_terms(query.terms),
            heading=head + HEADING,
            nothing=head,
            listed=FILES_FOUND if ranked else ALL_FILES,
        )
        return answer.text + below

    def _all_paths(self, scope: Scope) -> tuple[str, ...]:
        """Return all paths of a small scope, code first: better than "no matches"."""
        if len(scope.view.ids) > _MAX_LISTED_FILES:
            return ()
        paths = [
            scope.path_of(entry)
            for entry in self._engine.contents.entries(scope.view.ids).values()
            if entry.spans
        ]
        paths = [path for path in paths if not path.rpartition("/")[2].startswith(".")]
        return tuple(sorted(paths, key=lambda path: (kind_of(path) != "code", path)))

    async def _answer_by_ripgrep(
        self,
        text: str,
        scope: Scope,
        length: int,
    ) -> str:
        share = length // len(scope.workspaces)
        notes = list(scope.notes)
        notes += [
            f"{_progress_note(space)} So this is a plain text search; ask "
            "again later for better results."
            for space in _workspaces_in_progress(scope.workspaces)
        ]
        answers = [
            await self._ripgrep.answer(
                space.root,
                text,
                partial(_is_visible, space, scope.workspaces),
                share - sum(map(len, notes)) // len(scope.workspaces) - len(notes) - 1,
                prefix=scope.prefix_of(space),
            )
            for space in scope.workspaces
        ]
        return "\n".join([*answers, *notes])

    async def _answer_commits(self, text: str, scope: Scope, length: int) -> str:
        query = await asyncio.to_thread(queries.parse_query, text)
        commits = [
            commit
            for space in scope.workspaces
            if (history := self._engine.history_of(space))
            for commit in history.commits
        ]
        if scope.notes and not scope.workspaces:
            return empty_answer(scope)
        if not commits:
            return "No commit history is at hand for this workspace.\n"
        ranked = await asyncio.to_thread(rank_commits, commits, query.terms)
        return render_commits(ranked, length)


def _workspaces_in_progress(spaces: Iterable[Workspace]) -> list[Workspace]:
    building = (Phase.SCANNING, Phase.INDEXING)
    return [w for w in spaces if not w.is_usable and w.status.phase in building]


def _progress_note(space: Workspace) -> str:
    share = space.status.percentage
    return f"The index of {space.root.name} is being built ({share:.0f} %)."


def _is_visible(space: Workspace, spaces: Sequence[Workspace], path: str) -> bool:
    """Tell whether a file may be shown, and no outer workspace shows it already."""
    return space.rules.reason(path) is None and not any(
        outer.rules.reason(prefix + path) is None
        for outer, prefix in outer_workspaces(space, spaces)
    )


def _copy_notes(
    packed: PackedAnswer,
    entries: Mapping[int, Entry],
    scope: Scope,
    copies: Mapping[int, Sequence[str]],
) -> Iterator[str]:
    """Yield a note for each shown file that has copies, in any workspace."""
    for file in packed.files:
        first, *others = scope.paths_of(entries[file.blob_id]) or [file.path]
        others += copies.get(file.blob_id, ())
        if others:
            yield copy_note(first, others)


def _describe_hit(
    file: RankedFile,
    entries: Mapping[int, Entry],
    scope: Scope,
    current: CurrentFiles,
) -> dict[str, Any]:
    entry = entries[file.blob_id]
    paths = [str(space.root / entry.path) for space in scope.spaces_of(entry)]
    return {
        "path": file.path,
        "file": paths[0] if paths else "",
        "also": paths[1:],
        **excerpts.describe_rank(file, current.spans_of(file.blob_id)),
    }


def rank_commits(commits: Sequence[Commit], query: Mapping[str, float]) -> list[Commit]:
    """Return the commits whose message and paths match best; of equals, newest first.

    Each query term counts once per commit, by its inverse document frequency.
    """
    matching_terms = [_commit_terms(commit) & query.keys() for commit in commits]
    commit_counts = Counter(term for matches in matching_terms for term in matches)
    weights = {
        term: query[term] * math.log(1 + len(commits) / count)
        for term, count in commit_counts.items()
    }
    scored = [
        (sum(weights[term] for term in matches), -place)
        for place, matches in enumerate(matching_terms)
        if matches
    ]
    return [commits[-place] for _, place in sorted(scored, reverse=True)[:_MAX_COMMITS]]


def _commit_terms(commit: Commit) -> set[str]:
    paths = " ".join(commit.files).replace("/", " ").replace(".", " ")
    return {*terms(commit.message), *terms(paths.replace("-", " "))}


def render_commits(commits: Sequence[Commit], limit: int) -> str:
    """Write commits with date, subject and files, in at most `limit` characters."""
    text = _COMMITS_HEADING if commits else _NO_COMMITS
    for commit in commits:
        seconds = min(max(0, commit.time), _MAX_COMMIT_TIME)
        date = datetime.fromtimestamp(seconds, UTC).date().isoformat()
        lines = mask_lines(commit.message.splitlines() or [""])
        subject, *body = map(escape, lines)
        block = f"Commit: {commit.hash[:12]} {date} {subject}\n"
        block += "".join(f"    {line}\n" for line in body if line.strip())
        block += "".join(f"  {escape(path)}\n" for path in commit.files[:_MAX_PATHS])
        if commit.touched > _MAX_PATHS:
            block += f"  and {commit.touched - _MAX_PATHS} more files\n"
        if len(text) + len(block) > limit:
            break
        text += block
    return text[:limit]
