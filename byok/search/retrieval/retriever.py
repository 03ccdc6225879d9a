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
    MAX_EXCERPTED_FILES,
    PackedAnswer,
    leave_out_copies,
    pack,
    pack_glimpses,
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
# Wait at most so long for files that were just saved to be indexed.
_SETTLE_SECONDS = 1.0
_SMALL = 16
# Something is near to any word, also to `xyzzy`; of so few words little is shown.
_FEWEST_TERMS = 3
_ONLY_NEAR = (
    "No word of this question is in the code here: what follows is only near to it in "
    "meaning, and may have nothing to do with it."
)
_LONGEST_NAME = 100
_NO_QUESTION = "missing information_request/query: say what to look for.\n"


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
        """Answer in the layout of the client's tool; no match is an answer, too."""
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
        asked = bool(query.strip())
        parts: list[str] = [] if asked else [_NO_QUESTION]
        if asked and request.code:
            parts.append(await self._answer_code(query, scope, length))
        elif asked and not request.commits:
            parts.append("Code retrieval was disabled for this request.\n")
        if asked and request.commits:
            room = length - len(parts[0]) - 1 if parts else length
            parts.append(await self._answer_commits(query, scope, room))
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

        A hit has path, score, kind, the parts of its score and line ranges; one of the
        search server has repository and revision, and no place on this machine. No
        ripgrep is used; the notes say what the index lacks. With `lines` a hit has so
        many lines of each chunk, and the answer the `terms` that were searched for.
        """
        await self.ranker.wait_until_indexed(_SETTLE_SECONDS)
        scope = await select_scope(self._engine, BlobNames(), roots, text)
        building = [*map(_progress_note, _workspaces_in_progress(scope.workspaces))]
        if trouble := self._engine.indexer.error:
            building.append(f"Indexing failed, so hits may be missing: {trouble}")
        text = remove_roots(text, scope)
        query = await asyncio.to_thread(queries.parse_query, text)
        async with self._aids().ask_remote(text, scope) as asked:
            ranking = await self.ranker.rank(text, query, scope, may_wait=True)
            remote = await asked if asked else None
        found, entries, names = ranking[:3]
        current = CurrentFiles(self._engine.contents, entries, scope, query)
        best = await asyncio.to_thread(current.update, found[:limit], limit)
        hits = [_describe_hit(file, entries, scope, current) for file in best]
        notes = [*scope.notes, *current.notes(), *(building or stale_notes(scope))]
        answer: dict[str, Any] = {"hits": hits, "notes": notes}
        if names:
            answer["names"] = [one.describe() for one in names]
        if lines:
            read = excerpts.lines_of_hits
            found_lines = await asyncio.to_thread(read, best, current, query, lines)
            answer["terms"] = excerpts.describe_terms(query)
            for hit, shown in zip(hits, found_lines, strict=True):
                hit["lines"] = shown
        if remote is not None:
            hits += await asyncio.to_thread(remote.describe, best, current, lines)
            hits.sort(key=lambda hit: -hit["score"])  # local ones win ties
            del hits[limit:]
            notes += filter(None, [remote.note])
        return answer

    async def _answer_symbol(self, said: str, scope: Scope, length: int) -> str:
        """Show where a name is defined, and the lines that use it, and nothing else."""
        name = identifier_of(said)
        if not name:
            return f"{escape(said[:_LONGEST_NAME])} is no name of code.\n"
        if not scope.workspaces:
            return empty_answer(scope)
        if not self._asks_index(scope):
            return await self._answer_by_ripgrep(name, scope, length)
        query = await asyncio.to_thread(queries.parse_query, name)
        query = replace(query, names=(NameQuestion(name, NameIntent.USES),))
        ranking = await asyncio.to_thread(self.ranker.rank_by_words, query, scope)
        [found] = ranking.names
        known = {*found.defined_in, *found.paths}
        if not known:
            notes = [*scope.notes, *stale_notes(scope)]
            return "\n".join([escape(found.sentence), *notes])
        files = [file for file in ranking.files if file.blob_id in known]
        ranking = ranking._replace(files=files)
        return await asyncio.to_thread(self._write, ranking, query, scope, length)

    async def _answer_code(self, text: str, scope: Scope, length: int) -> str:
        """Answer from here, and below it what a search server adds, if there is one."""
        async with self._aids().ask_remote(text, scope) as hits:
            return await self._answer_here(text, scope, length, hits)

    async def _answer_here(
        self,
        text: str,
        scope: Scope,
        length: int,
        hits: "asyncio.Task[RemoteAnswer] | None" = None,
    ) -> str:
        by_index = self._asks_index(scope)
        is_empty = not scope.view.ids and (scope.named or not scope.workspaces)
        if not is_empty and (by_index or not scope.workspaces):
            try:
                query = await asyncio.to_thread(queries.parse_query, text)
                ranking = await self.ranker.rank(text, query, scope, may_wait=True)
                if not ranking.files and not text.isascii():
                    scope.notes.append(ASK_IN_ENGLISH)
                remote = await hits if hits else None
                return await asyncio.to_thread(
                    self._write, ranking, query, scope, length, remote
                )
            except IndexFailed as error:
                _log.error("the index cannot be searched: %s", error)
                scope.notes.append(f"The index was not searched. {error.sentence}")
        below = ""
        if hits:
            remote = await hits
            below = await asyncio.to_thread(remote.write, (), None, length // 2)
        if is_empty or not scope.workspaces:
            return empty_answer(scope)[: length - len(below)] + below
        text = await self._answer_by_ripgrep(text, scope, length - len(below))
        return text + below

    def _asks_index(self, scope: Scope) -> bool:
        if self._mode is SearchMode.AUTO:
            return scope.named or all(space.is_usable for space in scope.workspaces)
        return self._mode is SearchMode.INDEX

    def _write(
        self,
        ranking: Ranking,
        query: queries.Query,
        scope: Scope,
        length: int,
        remote: RemoteAnswer | None = None,
    ) -> str:
        found, entries, names, parts, _ = ranking
        current = CurrentFiles(self._engine.contents, entries, scope, query)
        asked = next(
            (one for one in names if one.is_reference_search and one.paths), None
        )
        found, copies = leave_out_copies(found, current.spans_of, current.lines_of)
        found = current.update(found, MAX_NAME_FILES if asked else MAX_EXCERPTED_FILES)
        below = remote.write(found, current, length) if remote else ""
        length -= len(below)
        glimpse = partial(excerpts.glimpse, current=current, query=query)
        said = [
            *([_ONLY_NEAR] if ranking.is_only_near else ()),
            *(one.sentence for one in names),
        ]
        head = "".join(f"{escape(sentence)}\n" for sentence in said)
        if asked:
            packed = pack_uses(asked, found, current, length, glimpse, parts)
        elif ranking.is_only_near and len(query.terms) < _FEWEST_TERMS:
            packed = pack_glimpses(found, glimpse, length)
        else:
            packed = pack(found, current.spans_of, length, glimpse)
        if not found:
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
            listed=FILES_FOUND if found else ALL_FILES,
        )
        return answer.text + below

    def _all_paths(self, scope: Scope) -> tuple[str, ...]:
        """List all files of a small scope, code first: better than "no matches"."""
        if len(scope.view.ids) > _SMALL:
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
                partial(_is_open, space, scope.workspaces),
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
        found = await asyncio.to_thread(rank_commits, commits, query.terms)
        return render_commits(found, length)


def _workspaces_in_progress(spaces: Iterable[Workspace]) -> list[Workspace]:
    building = (Phase.SCANNING, Phase.INDEXING)
    return [w for w in spaces if not w.is_usable and w.status.phase in building]


def _progress_note(space: Workspace) -> str:
    share = space.status.percentage
    return f"The index of {space.root.name} is being built ({share:.0f} %)."


def _is_open(space: Workspace, spaces: Sequence[Workspace], path: str) -> bool:
    """Tell whether a file may be shown and no outer workspace shows it already."""
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
    """Give a note for each shown file that has copies, here or in other workspaces."""
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
    places = [str(space.root / entry.path) for space in scope.spaces_of(entry)]
    return {
        "path": file.path,
        "file": places[0] if places else "",
        "also": places[1:],
        **excerpts.describe_rank(file, current.spans_of(file.blob_id)),
    }


# Find and write the commits of a workspace that match a question.


_HEADING = "The following commits were retrieved:\n"
_NOTHING = "No commit was found for this request (no matches).\n"
_MOST = 20
_FILES = 8
_LAST_SECOND = 253_402_300_799  # of the year 9999; git takes later ones


def rank_commits(commits: Sequence[Commit], query: Mapping[str, float]) -> list[Commit]:
    """Return the commits whose message and paths match best; newest first among equals.

    Each query term counts once per commit, by its inverse document frequency.
    """
    told = [_commit_terms(commit) & query.keys() for commit in commits]
    seen = Counter(term for found in told for term in found)
    worth = {
        term: query[term] * math.log(1 + len(commits) / count)
        for term, count in seen.items()
    }
    scored = [
        (sum(worth[term] for term in found), -place)
        for place, found in enumerate(told)
        if found
    ]
    return [commits[-place] for _, place in sorted(scored, reverse=True)[:_MOST]]


def _commit_terms(commit: Commit) -> set[str]:
    paths = " ".join(commit.files).replace("/", " ").replace(".", " ")
    return {*terms(commit.message), *terms(paths.replace("-", " "))}


def render_commits(commits: Sequence[Commit], limit: int) -> str:
    """Write commits with date, subject and files, in at most `limit` characters."""
    text = _HEADING if commits else _NOTHING
    for commit in commits:
        seconds = min(max(0, commit.time), _LAST_SECOND)
        when = datetime.fromtimestamp(seconds, UTC).date().isoformat()
        said = mask_lines(commit.message.splitlines() or [""])
        subject, *rest = map(escape, said)
        block = f"Commit: {commit.hash[:12]} {when} {subject}\n"
        block += "".join(f"    {line}\n" for line in rest if line.strip())
        block += "".join(f"  {escape(path)}\n" for path in commit.files[:_FILES])
        if commit.touched > _FILES:
            block += f"  and {commit.touched - _FILES} more files\n"
        if len(text) + len(block) > limit:
            break
        text += block
    return text[:limit]
