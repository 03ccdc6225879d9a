"""What byok knows of code, behind one door that opens when it is first needed.

Who only chats pays nothing: no file is made and no library loaded until a workspace is
declared or a client asks about blobs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from byok.augment import blobs as wire
from byok.augment.body import first_text, integer
from byok.augment.reply_job import Facts
from byok.augment.retrieval import decode_retrieval, encode_retrieval, wanted_roots
from byok.chat import Json
from byok.code_query import BlobNames, Passages, SearchMode, Wanted, to_bytes, to_text
from byok.errors import BadRequest, ByokError
from byok.index.options import Options
from byok.routing import Service

if TYPE_CHECKING:
    from byok.index.engine import ContextEngine
    from byok.index.workspace.workspace import Workspace
    from byok.retrieval.passages import PassageFinder
    from byok.retrieval.retriever import Retriever

_log = logging.getLogger(__name__)
_HITS, _MOST_HITS = 10, 100


class _Opened(NamedTuple):
    engine: "ContextEngine"
    retriever: "Retriever"
    passages: "PassageFinder"


class CodeContext:
    """The engine and its retriever, as the endpoints of the context use them."""

    def __init__(
        self,
        database: Path,
        index: Path,
        options: Options,
        mode: SearchMode = SearchMode.AUTO,
    ) -> None:
        self._database = database
        self._index = index
        self._options = options
        self._mode = mode
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._open: _Opened | None = None
        self._answers: Mapping[Service, Callable[[Json], Awaitable[Json]]] = {
            Service.FIND_MISSING: self._find_missing,
            Service.BATCH_UPLOAD: self._batch_upload,
            Service.CHECKPOINT: self._checkpoint,
            Service.RETRIEVAL: self._retrieve,
            Service.SEARCH: self._search,
            Service.INDEX_STATUS: self._status,
            Service.INDEX_ADD: self._add,
            Service.INDEX_REMOVE: self._remove,
            Service.INDEX_REBUILD: self._rebuild,
            Service.INDEX_WHY: self._why,
        }

    async def start(self) -> None:
        """Open now if there is something to follow, or later if that is hindered.

        Raises:
            NewerData, CorruptData: the files cannot be used.
        """
        if self._options.roots or self._database.exists():
            try:
                await self._opened()
            except ByokError as error:
                if error.code == "index_in_use":  # for now; whoever asks is told
                    _log.info("%s", error.sentence)
                elif error.retryable:  # such as no room on the disk
                    _log.warning("%s", error.sentence)
                else:
                    raise

    async def close(self) -> None:
        """Close what was opened."""
        await self._stack.aclose()

    async def answer(self, service: Service, body: Json) -> Json:
        """Answer one of the endpoints of the context."""
        return await self._answers[service](body)

    async def facts(self, names: BlobNames) -> Facts:
        """Say what of a chat request's blobs is unknown here.

        A chat goes on without: nothing is called unknown while the files are not open.
        """
        if names.is_empty:
            return Facts()
        try:
            engine = (await self._opened()).engine
        except ByokError as error:
            _log.warning("%s", error.sentence)
            return Facts()
        found = await engine.uploads.resolve(
            names.checkpoint, names.added, names.deleted
        )
        unknown = tuple(map(to_text, found.unknown))
        return Facts(unknown=unknown, checkpoint_found=found.checkpoint_found)

    async def passages(self, wanted: Wanted, length: int) -> Passages:
        """Return code for a chat, at most `length` characters of it.

        Raises:
            ByokError: the files about code cannot be used.
        """
        return await (await self._opened()).passages.find(wanted, length)

    def is_secret(self, path: str) -> bool:
        """Tell a file whose name is that of a secret, unless the user opened it."""
        from byok.index.files.secret_names import is_secret

        return is_secret(path, tuple(self._options.allow_secret))

    async def text_of(self, name: str) -> str | None:
        """Return the text of a blob that a client names; None if it is not here."""
        try:
            engine = (await self._opened()).engine
        except ByokError as error:
            _log.warning("%s", error.sentence)
            return None
        return await asyncio.to_thread(engine.contents.text_of, to_bytes(name))

    async def _opened(self) -> _Opened:
        async with self._opening:
            if self._open is None:
                from byok.index.opening import open_engine
                from byok.platform.programs import find_program
                from byok.retrieval.passages import PassageFinder
                from byok.retrieval.retriever import Retriever
                from byok.retrieval.ripgrep import Ripgrep

                engine = await self._stack.enter_async_context(
                    open_engine(self._database, self._index, self._options)
                )
                ripgrep = Ripgrep(find_program("rg", never=self._options.roots))
                retriever = Retriever(engine, ripgrep, self._mode)
                finder = PassageFinder(engine, retriever.ranker, self._mode)
                self._open = _Opened(engine, retriever, finder)
            return self._open

    # What clients ask

    async def _find_missing(self, body: Json) -> Json:
        names = {to_bytes(name): name for name in wire.asked_names(body)}
        engine = (await self._opened()).engine
        missing = await engine.uploads.find_missing(list(names))
        return wire.missing_reply(
            [names[name] for name in missing.unknown],
            [names[name] for name in missing.nonindexed],
        )

    async def _batch_upload(self, body: Json) -> Json:
        from byok.index.store.blobs import Upload

        sent = wire.sent_blobs(body)
        engine = (await self._opened()).engine
        names = await engine.uploads.upload(
            [Upload(blob.name, blob.path, blob.content) for blob in sent]
        )
        return wire.uploaded_reply(sent, [name.hex() for name in names])

    async def _checkpoint(self, body: Json) -> Json:
        names = await asyncio.to_thread(
            wire.checkpoint_names, body
        )  # there may be many
        engine = (await self._opened()).engine
        made = await engine.uploads.checkpoint(
            names.checkpoint, names.added, names.deleted
        )
        return wire.checkpoint_reply(made)

    async def _retrieve(self, body: Json) -> Json:
        retriever = (await self._opened()).retriever
        return encode_retrieval(await retriever.answer(decode_retrieval(body)))

    async def _search(self, body: Json) -> Json:
        retriever = (await self._opened()).retriever
        limit = min(max(1, integer(body, "limit", _HITS)), _MOST_HITS)
        return await retriever.search(
            first_text(body, "query"), limit, wanted_roots(body)
        )

    # What the command line asks

    async def _status(self, body: Json) -> Json:
        from byok.index.report import totals

        del body
        if self._open is None and not self._database.exists():
            told = {"state": "standby", "error": "", "waiting": 0, "mode": self._mode}
            return {**told, "workspaces": [], "totals": {}}
        engine = (await self._opened()).engine
        return {
            "state": engine.state,
            "error": engine.indexer.error,
            "waiting": engine.indexer.open_tasks,
            "mode": self._mode,
            "workspaces": [_told(workspace) for workspace in engine.workspaces],
            "totals": await asyncio.to_thread(totals, engine.store),
        }

    async def _add(self, body: Json) -> Json:
        engine = (await self._opened()).engine
        workspace = await engine.add(_path(body, "root"))
        return {"workspace": _told(workspace)}

    async def _remove(self, body: Json) -> Json:
        engine = (await self._opened()).engine
        root = _path(body, "root")
        if not await engine.remove(root):
            raise BadRequest(
                f"{root} is no workspace.",
                hint="`byok index status` lists them.",
                code="no_workspace",
                status=422,
            )
        return {"removed": str(root)}

    async def _rebuild(self, body: Json) -> Json:
        del body
        engine = (await self._opened()).engine
        files = await engine.rebuild()
        told = [_told(workspace) for workspace in engine.workspaces]
        return {"files": files, "workspaces": told}

    async def _why(self, body: Json) -> Json:
        from byok.index.report import why

        engine = (await self._opened()).engine
        path = _path(body, "path")
        what, reason = await asyncio.to_thread(
            why, engine.workspaces, engine.store, path
        )
        return {
            "path": str(path),
            "what": what,
            "reason": reason,
            "explanation": reason.explanation if reason else "",
        }


def _path(body: Json, field: str) -> Path:
    given = Path(first_text(body, field) or ".")
    if not given.is_absolute() or ".." in given.parts:
        raise BadRequest(f"{field} must be an absolute path.", status=422)
    return given


def _told(workspace: "Workspace") -> dict[str, Any]:
    return {
        **asdict(workspace.progress),
        "note": workspace.note,
        "counters": asdict(workspace.counters),
    }
