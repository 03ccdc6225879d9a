"""Ask a search server for retrieval, and rank its hits beside the local files.

A question waits for the server only for a short time, and not at all during the pause
after a failure. The local answer is complete in any case, and one line says that the
server was left out.

The hits are ranked together with the local files by the same formula, from the text of
both, because the scores of two engines cannot be compared:

    score of a chunk = sum over its words of the question, each by its rarity among all
                       candidates and with saturation for repetitions (TF-IDF)

Local files keep their own scores. The server's files get scores on their scale, by the
local file whose text is best, and `pack` decides which chunks of which files fit. Local
files win ties, and the server's files are shown below them.
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
from byok.search.remote.zoekt import RemoteFile, SearchServer
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

SECONDS = 0.6  # for which a question waits
_MAX_FILES = 40
_MAX_CHARS = 200_000  # of all files together
_MAX_COMPARED_CHUNKS = 5  # of a local file
_SHOWN_CHUNKS = 3  # of a hit
# Maximum share of the answer, if the best file is a local one or the server's.
_SHARE_BELOW, _SHARE_ABOVE = 0.35, 0.7
_MIN_LINE_CHARS = 12  # of lines that two files hardly share by chance
_EMPTY_QUERY = parse_query("")
_HEADING = (
    "The following code is in other repositories, found by the search server {}. These "
    "files are not in this workspace and cannot be opened here:\n"
)


class RemotePlace(NamedTuple):
    """The address of a search server; `host` has a port."""

    url: str
    host: str
    is_local: bool  # on this machine


class RemoteSearch(Struct, eq=False):
    """A search server that the settings name; asked only with the user's consent.

    `consent` returns what the user has confirmed, for each question anew; `redact`
    removes the user's own keys.
    """

    place: RemotePlace
    search: SearchServer
    consent: Callable[[], Consent]
    redact: Callable[[str], str]
    pause: Pause
    seconds: float = SECONDS
    _names: dict[Path, str] = {}  # of repositories, by folder
    _requests: int = 0
    _answers: int = 0

    @property
    def status(self) -> RemoteStatus:
        """The current state; reads a small file."""
        return RemoteStatus(
            url=self.place.url,
            enabled=self._is_allowed(),
            asked=self._requests,
            answered=self._answers,
            note=self.pause.note,
            next_try=self.pause.seconds,
        )

    def begin(self, question: str, roots: Sequence[Path]) -> "asyncio.Task[RemoteHits]":
        """Start to ask, and return a task for the hits, which the caller cancels.

        Hits in the repositories of `roots` are left out, as these are searched here.
        """
        return asyncio.ensure_future(self._ask(question, roots))

    async def _ask(self, question: str, roots: Sequence[Path]) -> "RemoteHits":
        sent = await asyncio.to_thread(self._read_question, question, roots)
        if sent is None or not sent.terms:
            return RemoteHits(self.place.host)
        if self.pause.seconds:
            return self._left_out()
        self._requests += 1
        try:
            async with asyncio.timeout(self.seconds):
                files = await self.search(sent.terms, sent.names, _MAX_FILES)
        except TimeoutError:
            self.pause.begin(f"It did not answer within {self.seconds:g} seconds.")
            return self._left_out()
        except ByokError as error:
            self.pause.begin(error.sentence)
            return self._left_out()
        self.pause.end()
        self._answers += 1
        local_names = {name for root in roots if (name := self._names[root])}
        selected = _select_files(files, local_names)
        return RemoteHits(self.place.host, selected, sent.query)

    def _read_question(
        self, question: str, roots: Iterable[Path]
    ) -> RemoteQuestion | None:
        """Return the question to send, None without consent. Blocks for a moment."""
        if not self._is_allowed():
            return None
        for root in roots:
            if root not in self._names:
                self._names[root] = repository_name_of(root) or root.name.lower()
        return read_question(question, self.redact)

    def _is_allowed(self) -> bool:
        place = self.place
        return self.consent().allows(place.host, "", is_local=place.is_local)

    def _left_out(self) -> "RemoteHits":
        note = f"The search server {self.place.host} was left out. {self.pause.note}"
        return RemoteHits(self.place.host, note=note)


def _select_files(
    files: Iterable[RemoteFile], local_names: Iterable[str]
) -> list[RemoteFile]:
    """Return files of other repositories: each content once, of bounded length."""
    selected: list[RemoteFile] = []
    digests: set[str] = set()
    free = _MAX_CHARS
    for file in files:
        if _is_local(file.repository, local_names) or file.digest in digests:
            continue
        free -= sum(len(line) + 1 for piece in file.pieces for line in piece.lines)
        if free < 0:
            break
        digests |= {file.digest} - {""}
        selected.append(file)
    return selected


def _is_local(repository: str, local_names: Iterable[str]) -> bool:
    """Tell whether a server's name means a local repository, named host/owner/name.

    Some servers leave out the host, or the host and the owner.
    """
    name = repository.lower().removesuffix(".git")
    return any(local == name or local.endswith(f"/{name}") for local in local_names)


class _RemoteHit(NamedTuple):
    """A file of the server in the form of local files: all lines, and chunks."""

    file: RemoteFile
    lines: list[str]
    spans: list[Span]


class RemoteHits(Struct, eq=False):
    """The hits of a server for one question (`model_aids.RemoteAnswer`).

    `note` says why the server was left out, "" if it was not.
    """

    host: str
    files: Sequence[RemoteFile] = ()
    query: Query = _EMPTY_QUERY
    note: str = ""
    __repr__ = object.__repr__  # without code

    def write(
        self, files: Sequence[RankedFile], current: CurrentFiles | None, length: int
    ) -> str:
        """Return the text, at most a share of `length`; "" without hits and note.

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
    ) -> tuple[dict[int, "_RemoteHit"], list[RankedFile]]:
        """Return the server's files by number, and ranked beside local ones."""
        local = _terms_by_chunk(files[:MAX_CODE_FILES], current) if current else {}
        remote = {-1 - n: _chunk_hit(file) for n, file in enumerate(self.files)}
        remote = {n: f for n, f in remote.items() if not _is_copy(f, files, current)}
        return remote, self._rank(files, local, remote)

    def _write_code(
        self, files: Sequence[RankedFile], current: CurrentFiles | None, length: int
    ) -> str:
        remote, ranked = self._rank_beside(files, current)
        merged = sorted(
            [*files, *ranked],
            key=lambda file: (-round(file.score, 9), file.blob_id < 0),
        )

        def spans_of(blob_id: int) -> Sequence[Span]:
            if blob_id < 0 or current is None:
                return remote[blob_id].spans
            return current.spans_of(blob_id)

        packed = [f for f in pack(merged, spans_of, length).files if f.blob_id < 0]
        if not packed:
            return ""
        is_best = merged[0].blob_id < 0
        titled = [f._replace(path=remote[f.blob_id].file.title) for f in packed]
        return render(
            PackedAnswer((*titled,), ()),
            lambda file: _masked_lines(remote[file.blob_id]),
            int(length * (_SHARE_ABOVE if is_best else _SHARE_BELOW)),
            find=find_terms(self.query.terms),
            heading=_HEADING.format(self.host),
        ).text

    def _rank(
        self,
        files: Sequence[RankedFile],
        local: Mapping[tuple[int, int], Counter[str]],
        remote: Mapping[int, _RemoteHit],
    ) -> list[RankedFile]:
        """Return the server's files with scores on the scale of the local ones."""
        texts = dict(local)
        paths = {file.blob_id: file.path for file in files}
        for number, hit in remote.items():
            paths[number] = f"{hit.file.repository}/{hit.file.path}"
            for ordinal, span in enumerate(hit.spans):
                lines = hit.lines[span.first : span.last + 1]
                texts[number, ordinal] = _count_terms(hit.file.path, lines)
        ranked = rank(
            _score_chunks(texts, self.query.terms),
            lambda number: FileEntry(number, paths[number], kind_of(paths[number])),
            self.query,
        )
        local_scores = {file.blob_id: file.score for file in files}
        best = next((file for file in ranked if file.blob_id >= 0), None)
        factor = local_scores[best.blob_id] / best.score if best else 1.0
        return [
            replace(file, score=file.score * factor)
            for file in ranked
            if file.blob_id < 0
        ]


def _describe_hit(
    file: RankedFile, hit: _RemoteHit, query: Query, lines: int
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "path": hit.file.path,
        "repository": hit.file.repository,
        "revision": hit.file.revision,
        "file": "",
        "also": [],
        **describe_rank(file, hit.spans),
    }
    if lines:
        fields["lines"] = [
            line
            for span in sorted(
                hit.spans[n.ordinal] for n in file.chunks[:_SHOWN_CHUNKS]
            )
            for line in lines_of_span(
                hit.lines, span, hit.file.path, query.terms, lines
            )
        ]
    return fields


def _terms_by_chunk(
    files: Sequence[RankedFile], current: CurrentFiles
) -> dict[tuple[int, int], Counter[str]]:
    """Return the terms of the best chunks of local files."""
    terms_by_chunk = {}
    for file in files:
        spans, lines = current.spans_of(file.blob_id), current.lines_of(file.blob_id)
        best = [chunk.ordinal for chunk in file.chunks[:_MAX_COMPARED_CHUNKS]] or [0]
        for ordinal in best if lines else ():
            if ordinal < len(spans):
                first, last, _ = spans[ordinal]
                text = (lines or [])[first : last + 1]
                terms_by_chunk[file.blob_id, ordinal] = _count_terms(file.path, text)
    return terms_by_chunk


def _count_terms(path: str, lines: Iterable[str]) -> Counter[str]:
    return Counter([*path_terms(path), *(t for line in lines for t in terms(line))])


def _score_chunks(
    texts: Mapping[tuple[int, int], Counter[str]], weights: Mapping[str, float]
) -> list[ChunkScore]:
    """Return the TF-IDF scores of chunks among themselves."""
    counts = Counter(term for text in texts.values() for term in text.keys() & weights)
    rarities = {
        term: weights[term] * math.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
        for term, count in counts.items()
    }
    return [
        ChunkScore(blob_id, ordinal, score)
        for (blob_id, ordinal), text in texts.items()
        if (score := sum(w * text[t] / (text[t] + 1) for t, w in rarities.items()))
    ]


def _chunk_hit(file: RemoteFile) -> _RemoteHit:
    """Place the excerpts of a file at their lines, and split them into chunks."""
    last = max(piece.first + len(piece.lines) for piece in file.pieces)
    lines = [""] * last
    spans = []
    for piece in file.pieces:
        lines[piece.first : piece.first + len(piece.lines)] = piece.lines
        for first, end, size in cut(piece.lines, (), prose=False):
            spans.append(Span(piece.first + first, piece.first + end, size))
    return _RemoteHit(file, lines, spans)


def _masked_lines(hit: _RemoteHit) -> list[str]:
    """Return the lines with secrets masked, by the rules for the file's type."""
    lines = list(hit.lines)
    for first, excerpt in hit.file.pieces:
        lines[first : first + len(excerpt)] = mask_lines(excerpt, path=hit.file.path)
    return lines


def _is_copy(
    hit: _RemoteHit, files: Sequence[RankedFile], current: CurrentFiles | None
) -> bool:
    """Tell whether a local file has the same path and a line of the server's file."""
    same_path = [f for f in files if f"/{f.path}".endswith(f"/{hit.file.path}")]
    if current is None or not same_path:
        return False
    telling = {line for line in hit.lines if len(line.strip()) >= _MIN_LINE_CHARS}
    local_lines = (current.lines_of(file.blob_id) or () for file in same_path)
    return any(not telling.isdisjoint(lines) for lines in local_lines)
