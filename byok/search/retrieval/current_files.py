"""Files as they are now, found by what the index knows of them.

A file that was changed is indexed again after a moment, or after minutes if thousands
were changed on a busy machine. Until then it is found by its older version, and what is
shown of it is what it says now. Its older chunks are no guide to that, so its text is
cut anew, without a parser, and its chunks are chosen by the words of the question. A
file that has none of these any more is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from byok.search.index.contents import Contents, Entry
from byok.search.index.files.reading import Unreadable
from byok.search.index.files.text import lines_in
from byok.search.index.parse.chunking import cut
from byok.search.index.parse.tokens import terms
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import SkipReason, Span
from byok.search.retrieval.query import Query
from byok.search.retrieval.rank import RankedFile
from byok.search.retrieval.scope import Scope

_NAMED = 3  # files in a note


class CurrentFiles:
    """The lines and chunks of found files, as the files are now; each is read once.

    Where the client named the blobs, these versions are what it asks about.
    """

    def __init__(
        self,
        contents: Contents,
        entries: Mapping[int, Entry],
        scope: Scope,
        query: Query,
    ) -> None:
        self._contents = contents
        self._entries = entries
        self._scope = scope
        self._query = query
        self._lines: dict[int, list[str] | None] = {}
        self._spans: dict[int, Sequence[Span]] = {}
        self._changed: list[str] = []

    def update(self, files: Sequence[RankedFile], most: int) -> list[RankedFile]:
        """Return files with the chunks that they have now; of the first `most`.

        Those that no longer match are left out. Blocks while it reads.
        """
        found = [self._update(file) for file in files[:most]]
        return [file for file in found if file is not None] + list(files[most:])

    def spans_of(self, blob_id: int) -> Sequence[Span]:
        """Return the chunks of a file, in order."""
        return self._spans.get(blob_id) or self._entries[blob_id].spans

    def lines_of(self, blob_id: int) -> list[str] | None:
        """Return the lines of a file; None if they can no longer be shown."""
        if blob_id not in self._lines:
            self._lines[blob_id] = self._contents.lines_of(self._entries[blob_id])
        return self._lines[blob_id]

    def notes(self) -> list[str]:
        """Return a sentence about files that changed since they were indexed."""
        if not self._changed:
            return []
        names = ", ".join(self._changed[:_NAMED])
        if more := len(self._changed) - _NAMED:
            names += f" and {more} more" if more > 0 else ""
        return [f"Changed since the last indexing, and shown as they are now: {names}."]

    def _update(self, file: RankedFile) -> RankedFile | None:
        entry = self._entries[file.blob_id]
        spaces = [] if self._scope.named else self._scope.spaces_of(entry)
        if not spaces:
            return file
        try:
            roots = [space.root for space in spaces]
            content, same = self._contents.current_of(entry, roots)
        except Unreadable:
            return file  # the note on its place says that it is gone
        lines = lines_in(content, entry.path)
        if isinstance(lines, SkipReason):
            return None
        self._lines[file.blob_id] = lines
        return file if same else self._cut_anew(file, lines)

    def _cut_anew(self, file: RankedFile, lines: list[str]) -> RankedFile | None:
        spans = cut(lines, (), prose=False)
        chunks = [
            ChunkScore(file.blob_id, place, score)
            for place, span in enumerate(spans)
            if (score := self._score(lines[span.first : span.last + 1]))
        ]
        if file.chunks and not chunks:
            return None
        self._spans[file.blob_id] = spans
        self._changed.append(file.path)
        chunks.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
        return replace(file, chunks=tuple(chunks))

    def _score(self, lines: Sequence[str]) -> float:
        """Return the weights of the words of the question that some lines have."""
        found = {term for line in lines for term in terms(line)}
        wanted = self._query.terms
        return sum(wanted[term] for term in found & wanted.keys())
