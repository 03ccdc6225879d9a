"""What retrieval asks of a search server, and what becomes of the answer.

A question waits for it at most the seconds it is given, and not while the server rests
after a failure. Whatever happens, the local answer is complete, and one line says that
the server was left out.

What the server found is ranked with the local files by the same formula, from the text
of both, because scores of two engines cannot be compared:

    worth of a chunk = sum of its words of the question, the rarer among all candidates
                       the more, and repeated ones little more (TF-IDF)

Local files keep their own scores; the server's get theirs in the measure of the local
one whose text is best, and `pack` decides which chunks of which files fit. Local files
win ties, and the others are shown below them.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from byok.core.code_query import RemoteStatus
from byok.core.errors import ByokError
from byok.search.index.files.languages import kind_of
from byok.search.index.parse.chunking import cut
from byok.search.index.parse.tokens import path_terms, terms
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Span
from byok.search.index.workspace.git_history import repository_name_of
from byok.search.outside.consent import Consent
from byok.search.outside.server import Pause
from byok.search.remote.question import RemoteQuestion, read_question
from byok.search.remote.server import RemoteFile, SearchServer
from byok.search.retrieval.excerpts import (
    CurrentFiles,
    describe_rank,
    find_terms,
    lines_of_span,
)
from byok.search.retrieval.masking import mask_lines
from byok.search.retrieval.pack import MAX_CODE_FILES, PackedAnswer, pack
from byok.search.retrieval.query import Query, parse_query
from byok.search.retrieval.rank import FileEntry, RankedFile, rank
from byok.search.retrieval.render import render

SECONDS = 0.6  # what a question waits
_FILES = 40  # that are asked for
_CHARACTERS = 200_000  # of all of them together
_COMPARED = 5  # chunks of a local file
_SHOWN = 3  # chunks of a hit
# Of the answer, at most: where the best local file is better, and where it is not.
_SHARE_BELOW, _SHARE_ABOVE = 0.35, 0.7
_LONG_LINE = 12  # characters that say something
_NO_QUERY = parse_query("")
_HEADING = (
    "The following code is in other repositories, found by the search server {}. These "
    "files are not in this workspace and cannot be opened here:\n"
)


class RemotePlace(NamedTuple):
    """Where a search server is; `host` has a port. One on this machine `is_local`."""

    url: str
    host: str
    is_local: bool


class RemoteSearch(Struct, eq=False):
    """A search server that the settings name; asked only with the user's consent.

    `consent` reads what the user confirmed, for each question; `redact` removes the
    user's own keys.
    """

    place: RemotePlace
    search: SearchServer
    consent: Callable[[], Consent]
    redact: Callable[[str], str]
    pause: Pause
    seconds: float = SECONDS
    _names: dict[Path, str] = {}  # of repositories, by folder
    _asked: int = 0
    _answered: int = 0

    @property
    def status(self) -> RemoteStatus:
        """What it does now; reads a small file."""
        return RemoteStatus(
            url=self.place.url,
            enabled=self._is_allowed(),
            asked=self._asked,
            answered=self._answered,
            note=self.pause.note,
            next_try=self.pause.seconds,
        )

    def begin(self, question: str, roots: Sequence[Path]) -> "asyncio.Task[RemoteHits]":
        """Ask, and return what has the hits in time; cancel it when done.

        What is in the repositories of `roots` is left out: it is searched here.
        """
        return asyncio.ensure_future(self._ask(question, roots))

    async def _ask(self, question: str, roots: Sequence[Path]) -> "RemoteHits":
        asked = await asyncio.to_thread(self._prepare, question, roots)
        if asked is None or not asked.terms:
            return RemoteHits(self.place.host)
        if self.pause.seconds:
            return self._without()
        self._asked += 1
        try:
            async with asyncio.timeout(self.seconds):
                found = await self.search(asked.terms, asked.names, _FILES)
        except TimeoutError:
            self.pause.begin(f"It did not answer within {self.seconds:g} seconds.")
            return self._without()
        except ByokError as error:
            self.pause.begin(error.sentence)
            return self._without()
        self.pause.end()
        self._answered += 1
        here = {name for root in roots if (name := self._names[root])}
        return RemoteHits(self.place.host, _select(found, here), asked.query)

    def _prepare(self, question: str, roots: Iterable[Path]) -> RemoteQuestion | None:
        """Return what is asked, None without consent; blocks for milliseconds."""
        if not self._is_allowed():
            return None
        for root in roots:
            if root not in self._names:
                self._names[root] = repository_name_of(root) or root.name.lower()
        return read_question(question, self.redact)

    def _is_allowed(self) -> bool:
        place = self.place
        return self.consent().allows(place.host, "", is_local=place.is_local)

    def _without(self) -> "RemoteHits":
        note = f"The search server {self.place.host} was left out. {self.pause.note}"
        return RemoteHits(self.place.host, note=note)


def _select(found: Iterable[RemoteFile], here: Iterable[str]) -> list[RemoteFile]:
    """Return the files of other repositories, each content once, of bounded length."""
    kept: list[RemoteFile] = []
    seen: set[str] = set()
    room = _CHARACTERS
    for file in found:
        if _is_here(file.repository, here) or file.digest in seen:
            continue
        room -= sum(len(line) + 1 for piece in file.pieces for line in piece.lines)
        if room < 0:
            break
        seen |= {file.digest} - {""}
        kept.append(file)
    return kept


def _is_here(repository: str, here: Iterable[str]) -> bool:
    """Tell whether a server's name is that of a local repository, host/owner/name.

    Some servers leave out the host, or the owner too.
    """
    name = repository.lower().removesuffix(".git")
    return any(own == name or own.endswith(f"/{name}") for own in here)


class _Far(NamedTuple):
    """A file of the server as retrieval takes it: lines by number, chunks."""

    file: RemoteFile
    lines: list[str]
    spans: list[Span]


class RemoteHits(Struct, eq=False):
    """What a server found for one question; writes it below the local answer.

    `note` says why it was left out, "" if it was not.
    """

    host: str
    files: Sequence[RemoteFile] = ()
    query: Query = _NO_QUERY
    note: str = ""
    __repr__ = object.__repr__  # it shows nothing of what it holds

    def write(
        self, files: Sequence[RankedFile], current: CurrentFiles | None, length: int
    ) -> str:
        """Return the text, of a share of `length`; "" if there is nothing to say.

        `files` are the local ones, best first, and `current` has their lines. Blocks.
        """
        text = self._write_code(files, current, length) if self.files else ""
        if self.note and not text:
            text = f"{self.note}\n"
        return f"\n{text}"[:length] if text else ""

    def describe(
        self, files: Sequence[RankedFile], current: CurrentFiles | None, lines: int
    ) -> list[dict[str, Any]]:
        """Return the server's files as hits, best first; see `RemoteAnswer`. Blocks."""
        far, ranked = self._rank_beside(files, current)
        return [
            _describe_hit(file, far[file.blob_id], self.query, lines) for file in ranked
        ]

    def _rank_beside(
        self, files: Sequence[RankedFile], current: CurrentFiles | None
    ) -> tuple[dict[int, "_Far"], list[RankedFile]]:
        """Return the server's files by number, and ranked beside local ones."""
        local = _texts_of(files[:MAX_CODE_FILES], current) if current else {}
        far = {-1 - n: _lay_out(file) for n, file in enumerate(self.files)}
        far = {n: one for n, one in far.items() if not _is_copy(one, files, current)}
        return far, self._rank(files, local, far)

    def _write_code(
        self, files: Sequence[RankedFile], current: CurrentFiles | None, length: int
    ) -> str:
        far, ranked = self._rank_beside(files, current)
        merged = sorted(
            [*files, *ranked],
            key=lambda file: (-round(file.score, 9), file.blob_id < 0),
        )

        def spans_of(blob_id: int) -> Sequence[Span]:
            if blob_id < 0 or current is None:
                return far[blob_id].spans
            return current.spans_of(blob_id)

        chosen = [f for f in pack(merged, spans_of, length).files if f.blob_id < 0]
        if not chosen:
            return ""
        is_best = merged[0].blob_id < 0
        shown = [f._replace(path=far[f.blob_id].file.title) for f in chosen]
        return render(
            PackedAnswer((*shown,), ()),
            lambda file: _mask(far[file.blob_id]),
            int(length * (_SHARE_ABOVE if is_best else _SHARE_BELOW)),
            find=find_terms(self.query.terms),
            heading=_HEADING.format(self.host),
        ).text

    def _rank(
        self,
        files: Sequence[RankedFile],
        local: Mapping[tuple[int, int], Counter[str]],
        far: Mapping[int, _Far],
    ) -> list[RankedFile]:
        """Return the server's files with scores in the measure of the local ones."""
        texts = dict(local)
        paths = {file.blob_id: file.path for file in files}
        for number, one in far.items():
            paths[number] = f"{one.file.repository}/{one.file.path}"
            for ordinal, span in enumerate(one.spans):
                lines = one.lines[span.first : span.last + 1]
                texts[number, ordinal] = _count_terms(one.file.path, lines)
        ranked = rank(
            _weigh(texts, self.query.terms),
            lambda number: FileEntry(number, paths[number], kind_of(paths[number])),
            self.query,
        )
        own = {file.blob_id: file.score for file in files}
        best = next((file for file in ranked if file.blob_id >= 0), None)
        measure = own[best.blob_id] / best.score if best else 1.0
        return [
            replace(file, score=file.score * measure)
            for file in ranked
            if file.blob_id < 0
        ]


def _describe_hit(
    file: RankedFile, far: _Far, query: Query, lines: int
) -> dict[str, Any]:
    hit: dict[str, Any] = {
        "path": far.file.path,
        "repository": far.file.repository,
        "revision": far.file.revision,
        "file": "",
        "also": [],
        **describe_rank(file, far.spans),
    }
    if lines:
        hit["lines"] = [
            line
            for span in sorted(far.spans[n.ordinal] for n in file.chunks[:_SHOWN])
            for line in lines_of_span(
                far.lines, span, far.file.path, query.terms, lines
            )
        ]
    return hit


def _texts_of(
    files: Sequence[RankedFile], current: CurrentFiles
) -> dict[tuple[int, int], Counter[str]]:
    """Return the terms of the best chunks of local files."""
    found = {}
    for file in files:
        spans, lines = current.spans_of(file.blob_id), current.lines_of(file.blob_id)
        best = [chunk.ordinal for chunk in file.chunks[:_COMPARED]] or [0]
        for ordinal in best if lines else ():
            if ordinal < len(spans):
                first, last, _ = spans[ordinal]
                text = (lines or [])[first : last + 1]
                found[file.blob_id, ordinal] = _count_terms(file.path, text)
    return found


def _count_terms(path: str, lines: Iterable[str]) -> Counter[str]:
    return Counter([*path_terms(path), *(t for line in lines for t in terms(line))])


def _weigh(
    texts: Mapping[tuple[int, int], Counter[str]], wanted: Mapping[str, float]
) -> list[ChunkScore]:
    """Return the scores of chunks from their own words."""
    seen = Counter(term for text in texts.values() for term in text.keys() & wanted)
    worth = {
        term: wanted[term] * math.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
        for term, count in seen.items()
    }
    return [
        ChunkScore(blob_id, ordinal, score)
        for (blob_id, ordinal), text in texts.items()
        if (score := sum(w * text[t] / (text[t] + 1) for t, w in worth.items()))
    ]


def _lay_out(file: RemoteFile) -> _Far:
    """Put the lines of a file where they stand, and cut them to chunks."""
    last = max(piece.first + len(piece.lines) for piece in file.pieces)
    lines = [""] * last
    spans = []
    for piece in file.pieces:
        lines[piece.first : piece.first + len(piece.lines)] = piece.lines
        for first, end, size in cut(piece.lines, (), prose=False):
            spans.append(Span(piece.first + first, piece.first + end, size))
    return _Far(file, lines, spans)


def _mask(far: _Far) -> list[str]:
    """Return the lines with secrets masked, as the type of the file needs it."""
    lines = list(far.lines)
    for first, shown in far.file.pieces:
        lines[first : first + len(shown)] = mask_lines(shown, path=far.file.path)
    return lines


def _is_copy(
    far: _Far, files: Sequence[RankedFile], current: CurrentFiles | None
) -> bool:
    """Tell whether a file that is found here has the same path and a line of it."""
    named_so = [f for f in files if f"/{f.path}".endswith(f"/{far.file.path}")]
    if current is None or not named_so:
        return False
    said = {line for line in far.lines if len(line.strip()) >= _LONG_LINE}
    here = (current.lines_of(file.blob_id) or () for file in named_so)
    return any(not said.isdisjoint(lines) for lines in here)
