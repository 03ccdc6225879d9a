"""Access to the code index: questions, uploads, workspaces; opened on first use.

Opening is expensive: tantivy and tree-sitter are loaded, a database and an index are
created, worker processes start, and a lock is taken that keeps every other process out.
Users who only chat should pay for none of it. So the first call that needs the index
opens it, under a lock, and the heavy modules are imported there and not at the top.
`start` opens early only if a workspace is declared or data exists, so that changed
files are indexed before the first question. `status` never creates an index, as
`byok status` must not.

One process at a time can have the index open. If another one has it, the behaviour
depends on the method. A chat must not fail for lack of code: `find_unknown` and
`text_of` log the reason and answer that nothing is known to be missing. If they named
all blobs as unknown, the client would upload its whole workspace. Questions
(`retrieve`, `search`) and commands raise `IndexInUse`, because their callers can act on
it: the MCP server starts the daemon, a command waits. A failure is not cached, and the
next call tries again.

The methods take and return the types of `byok/core/code_query.py`, so that callers need
not write JSON in a client's field names and read it back. The endpoints of the editor's
protocol are written on top of them (`server/code_endpoints.py`).
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field, to_builtins

from byok.core.chat import Json
from byok.core.code_query import (
    BlobNames,
    CodeContextBlock,
    CodeQuestion,
    IndexStatus,
    PathStatus,
    Retrieval,
    RetrievalRequest,
    SearchMode,
    UnknownBlobs,
    Upload,
    WorkspaceReport,
    to_bytes,
    to_text,
)
from byok.core.errors import BadRequest, ByokError, DataDamaged, IndexInUse
from byok.core.platform.process import has_room
from byok.core.threads import to_the_end
from byok.search.index.types import IndexOptions
from byok.search.retrieval.model_aids import ModelAids, VectorSearch
from byok.storage.damage import is_damage

if TYPE_CHECKING:
    from byok.search.index.engine import ContextEngine
    from byok.search.index.report import SkippedFiles
    from byok.search.index.types import Skipped, SkipReason
    from byok.search.index.uploads import Missing
    from byok.search.index.workspace.workspace import Workspace
    from byok.search.retrieval.passages import PassageFinder
    from byok.search.retrieval.retriever import Retriever

_log = logging.getLogger(__name__)
_INDEX_MIB = 400  # address space: with less, threads of the index end the process
_MAX_NOTES = 3  # on ignore files of a workspace


class OpenIndex(NamedTuple):
    """The index, and what answers questions by it."""

    engine: "ContextEngine"
    retriever: "Retriever"
    passages: "PassageFinder"


class CodeContext(Struct, eq=False):
    """The index and its retriever, opened on first use."""

    database: Path
    index: Path
    options: IndexOptions
    mode: SearchMode = SearchMode.AUTO
    vectors: VectorSearch | None = None
    aids: ModelAids = field(default_factory=ModelAids)  # by the settings in force
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _open: OpenIndex | None = None
    _is_given_up: bool = False

    async def start(self) -> None:
        """Open the index now if a workspace is declared or the database exists.

        After a temporary failure, such as another process that has it open, it stays
        closed, and the first call that needs it opens it.

        Raises:
            ByokError: the files cannot be used, because a later byok wrote them or they
                may be another program's. Damaged files do not raise.
        """
        if self.options.roots or self.database.exists():
            try:
                await self.open()
            except IndexInUse as error:  # temporary; later calls raise it
                _log.info("%s", error.sentence)
            except ByokError as error:
                if not (error.retryable or isinstance(error, DataDamaged)):
                    raise
                _log.warning("%s", error.sentence)  # such as a full disk
            except (TypeError, ValueError, OverflowError, sqlite3.Error):
                # Rows that byok never wrote. Later calls raise, and chats continue.
                _log.exception("the code index cannot be opened")

    async def close(self) -> None:
        """Close the index if it is open."""
        async with self._opening:
            await self._stack.aclose()

    async def give_up(self) -> None:
        """Close the index for another process; it is not opened again here."""
        async with self._opening:
            self._is_given_up = True
            self._open = None
            await self._stack.aclose()

    async def find_unknown(self, names: BlobNames) -> UnknownBlobs:
        """Return which blobs of a chat request, and which checkpoint, are unknown here.

        If the index cannot be opened, nothing counts as unknown, and the chat continues
        without code.
        """
        if names.is_empty:
            return UnknownBlobs()
        try:
            engine = (await self.open()).engine
        except ByokError as error:
            _log.warning("%s", error.sentence)
            return UnknownBlobs()
        resolved = await engine.uploads.resolve(names)
        return UnknownBlobs(
            tuple(map(to_text, resolved.unknown)), resolved.checkpoint_found
        )

    async def passages(self, question: CodeQuestion, length: int) -> CodeContextBlock:
        """Return code for a chat, at most `length` characters.

        Raises:
            ByokError: the files about code cannot be used.
        """
        return await (await self.open()).passages.find(question, length)

    def is_secret(self, path: str) -> bool:
        """Tell whether a file's name is that of a secret.

        Names in the setting `context.allow_secret` are not.
        """
        from byok.search.index.files.secret_names import is_secret

        return is_secret(path, tuple(self.options.allow_secret))

    async def text_of(self, name: str) -> str | None:
        """Return the text of a blob by the client's name for it; None if unknown."""
        try:
            engine = (await self.open()).engine
        except ByokError as error:
            _log.warning("%s", error.sentence)
            return None
        return await asyncio.to_thread(engine.contents.text_of, to_bytes(name))

    async def open(self) -> OpenIndex:
        """Return the open index; open it first if it is closed or has failed.

        Opening completes even if the caller is cancelled: an index that is half closed
        would keep its files locked.

        Raises:
            ByokError: the files cannot be used.
        """
        if self._open is not None and self._open.engine.store.trouble is None:
            return self._open
        return await to_the_end(self._open_anew())

    async def _open_anew(self) -> OpenIndex:
        async with self._opening:
            if self._is_given_up:
                raise IndexInUse("byok restarts: the new process has the index.")
            damage = await self._close_if_in_trouble()
            if self._open is None:
                from byok.core.platform.programs import find_program
                from byok.search.index.engine import open_engine
                from byok.search.index.store.chunk_index import lack_of_memory
                from byok.search.retrieval.passages import PassageFinder
                from byok.search.retrieval.retriever import Retriever
                from byok.search.retrieval.ripgrep import Ripgrep

                if not has_room(_INDEX_MIB):
                    raise lack_of_memory()
                engine = await self._stack.enter_async_context(
                    open_engine(self.database, self.index, self.options, damage=damage)
                )
                ripgrep = Ripgrep(
                    lambda: find_program(
                        "rg", never=[w.root for w in engine.workspaces]
                    )
                )
                retriever = Retriever(engine, ripgrep, self.mode, lambda: self.aids)
                finder = PassageFinder(
                    engine, retriever.ranker, self.mode, lambda: self.aids
                )
                self._open = OpenIndex(engine, retriever, finder)
                if self.vectors is not None:
                    self._stack.push_async_callback(self.vectors.close)
                    await self.vectors.open(engine)
            return self._open

    async def _close_if_in_trouble(self) -> str:
        """Close an index whose database reported damage or I/O errors.

        Returns the message of certain damage. After other errors it returns "", and the
        whole file is checked at the next opening, because it was not closed cleanly.
        """
        trouble = self._open.engine.store.trouble if self._open else None
        if trouble is None:
            return ""
        self._open, stack, self._stack = None, self._stack, AsyncExitStack()
        try:
            await stack.aclose()
        except Exception:
            _log.exception("the index was not closed in good order")
        return str(trouble) if is_damage(trouble) else ""

    # --- Uploaded blobs ---
    async def find_missing(self, names: Sequence[bytes]) -> "Missing":
        """Return which of these names must be uploaded, or cannot be searched yet."""
        return await (await self.open()).engine.uploads.find_missing(names)

    async def upload(self, uploads: Sequence[Upload]) -> list[bytes]:
        """Store file versions, and return the names that byok computes for them.

        A different name of the client's is stored as an alias.

        Raises:
            NotReady: the disk is full.
        """
        return await (await self.open()).engine.uploads.upload(uploads)

    async def checkpoint(self, names: BlobNames) -> str | None:
        """Return an id that stands for a set of blobs; None if its base is unknown."""
        return await (await self.open()).engine.uploads.checkpoint(names)

    # --- Questions ---
    async def retrieve(self, request: RetrievalRequest) -> Retrieval:
        """Answer a question about code with excerpts, as text for a model."""
        return await (await self.open()).retriever.answer(request)

    async def search(
        self, question: str, limit: int, roots: Sequence[str], *, lines: int = 0
    ) -> Json:
        """Return the best files, their scores and reasons (`Retriever.search`)."""
        return await (await self.open()).retriever.search(
            question, limit, roots, lines=lines
        )

    # --- Workspaces ---
    async def status(self) -> IndexStatus:
        """Return the progress of indexing; opens no index that was never used."""
        from byok.search.index.report import totals

        server = self.aids.remote
        remote = await asyncio.to_thread(lambda: server.status) if server else None
        if self._open is None and not self.database.exists():
            return IndexStatus("standby", "", 0, self.mode, remote=remote)
        engine = (await self.open()).engine
        return IndexStatus(
            engine.state,
            engine.indexer.error,
            engine.indexer.open_tasks,
            self.mode,
            [_report_of(workspace) for workspace in engine.workspaces],
            await asyncio.to_thread(totals, engine.store),
            remote,
        )

    async def add(self, root: Path, *, permanent: bool = True) -> WorkspaceReport:
        """Declare a workspace, whose changes are indexed from now on.

        One that is not permanent is followed until byok ends.

        Raises:
            ConfigError: the folder cannot be a workspace.
        """
        engine = (await self.open()).engine
        return _report_of(await engine.add(root, permanent=permanent))

    async def remove(self, root: Path) -> bool:
        """Remove a workspace; False if the folder is none."""
        return await (await self.open()).engine.remove(root)

    async def rebuild(self) -> int:
        """Index every file again; return how many there are."""
        return await (await self.open()).engine.rebuild()

    async def find_skipped(
        self, root: str, reason: "SkipReason | None", offset: int, limit: int
    ) -> "SkippedFiles":
        """Return the files of a workspace that are not indexed (`index/report.py`).

        Raises:
            BadRequest: the folder is no workspace.
        """
        from byok.search.index.report import find_skipped

        engine = (await self.open()).engine
        for space in engine.workspaces:
            if str(space.root) == root:
                return await asyncio.to_thread(
                    find_skipped,
                    space,
                    engine.store,
                    wanted=lambda file: reason in (None, file.reason),
                    offset=offset,
                    limit=limit,
                )
        raise BadRequest(
            "This folder is not a workspace.", code="no_workspace", status=422
        )

    async def find_skipped_by_path(
        self, roots: Sequence[str], fits: Callable[[str], bool], limit: int
    ) -> "list[tuple[Path, Skipped]]":
        """Return files of some or all workspaces that are not indexed."""
        from byok.search.index.report import find_skipped_by_path

        engine = (await self.open()).engine
        spaces = [
            space
            for space in engine.workspaces
            if not roots or str(space.root) in roots
        ]
        return await asyncio.to_thread(
            find_skipped_by_path, spaces, engine.store, fits, limit
        )

    async def why(self, path: Path) -> PathStatus:
        """Return whether a path is indexed, or the rule that excludes it.

        Raises:
            BadRequest: no workspace contains it.
        """
        from byok.search.index.report import explain_path

        engine = (await self.open()).engine
        return await asyncio.to_thread(
            explain_path, engine.workspaces, engine.store, path
        )


def _report_of(workspace: "Workspace") -> WorkspaceReport:
    status = workspace.status
    notes = [status.note]
    if status.phase == "complete":  # while it is scanned, a note says why it is not
        notes += list(workspace.rules.notes.values())[:_MAX_NOTES]
    return WorkspaceReport(
        str(workspace.root),
        status.phase,
        status.percentage,
        files_tracked=workspace.file_count,
        files_processed=status.done,
        note="; ".join(filter(None, notes)),
        counters=to_builtins(workspace.counters),
    )
