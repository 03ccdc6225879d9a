"""The endpoints about code: decode the body, ask `CodeContext`, encode its answer.

The daemon answers clients and commands with these; a command that runs without a daemon
calls them in its own process, so that both ways give the same replies.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from msgspec import to_builtins
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import Json
from byok.core.code_query import Retrieval, RetrievalRequest, Upload, to_bytes
from byok.core.errors import BadRequest
from byok.core.platform.paths import Paths
from byok.core.routing import Service
from byok.protocols.augment import blobs as wire
from byok.protocols.augment.blobs import (
    decode_retrieval,
    encode_retrieval,
    requested_roots,
    with_folders,
)
from byok.protocols.augment.body import first_text, integer
from byok.protocols.augment.chat_request import open_folders
from byok.search.retrieval.code_context import CodeContext
from byok.server.daemon_endpoints import embed_handlers
from byok.settings import Settings
from byok.wiring.services import open_context

_HITS, _MAX_HITS = 10, 100  # of a search: by default, and at most
_WINDOW_HEADER = "X-Request-Session-Id"  # one for each window of an editor
_MAX_WINDOWS = 256
_MAX_WINDOW_CHARS = 100
_NO_CONVERSATION = "No earlier conversation says anything about this.\n"
# Returns what earlier conversations say about a question; None if none are remembered.
Recall: TypeAlias = Callable[[RetrievalRequest], Awaitable[str | None]]


async def recall_nothing(request: RetrievalRequest) -> None:
    """Recall nothing: a command without a daemon remembers no conversations."""


class CodeEndpoints:
    """Answers the endpoints about code."""

    def __init__(self, context: CodeContext, recall: Recall = recall_nothing) -> None:
        """Answer from the index `context` and, about conversations, from `recall`."""
        self._context = context
        self._recall = recall
        self.handlers: Mapping[str, Callable[[Json], Awaitable[Json]]] = {
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

    # For clients

    async def _find_missing(self, body: Json) -> Json:
        names = {to_bytes(name): name for name in wire.requested_names(body)}
        missing = await self._context.find_missing(list(names))
        return wire.missing_reply(
            [names[name] for name in missing.unknown],
            [names[name] for name in missing.nonindexed],
        )

    async def _batch_upload(self, body: Json) -> Json:
        uploads = wire.decode_uploads(body)
        names = await self._context.upload(
            [Upload(blob.name, blob.path, blob.content) for blob in uploads]
        )
        return wire.upload_reply(uploads, [name.hex() for name in names])

    async def _checkpoint(self, body: Json) -> Json:
        # There may be a quarter of a million names.
        names = await asyncio.to_thread(wire.checkpoint_names, body)
        return wire.checkpoint_reply(await self._context.checkpoint(names))

    async def _retrieve(self, body: Json) -> Json:
        query = decode_retrieval(body)
        recalled = await self._recall(query) if query.conversations else None
        if recalled is not None and not (query.code or query.commits or query.symbol):
            return encode_retrieval(Retrieval(recalled or _NO_CONVERSATION))
        if not recalled:
            return encode_retrieval(await self._context.retrieve(query))
        query = replace(query, length=query.length - len(recalled) - 1)
        found = await self._context.retrieve(query)
        return encode_retrieval(replace(found, text=f"{found.text}\n{recalled}"))

    async def _search(self, body: Json) -> Json:
        limit = min(max(1, integer(body, "limit", _HITS)), _MAX_HITS)
        question = first_text(body, "query")
        return await self._context.search(question, limit, requested_roots(body))

    # For byok's own commands

    async def _status(self, body: Json) -> Json:
        status: Json = to_builtins(await self._context.status())
        return status

    async def _add(self, body: Json) -> Json:
        permanent = body.get("permanent") is not False
        added = await self._context.add(_path(body, "root"), permanent=permanent)
        return {"workspace": to_builtins(added)}

    async def _remove(self, body: Json) -> Json:
        root = _path(body, "root")
        if not await self._context.remove(root):
            raise BadRequest(
                f"{root} is not a workspace.",
                hint="`byok index status` lists them.",
                code="no_workspace",
                status=422,
            )
        return {"removed": str(root)}

    async def _rebuild(self, body: Json) -> Json:
        files = await self._context.rebuild()
        status = await self._context.status()
        return {"files": files, "workspaces": to_builtins(status)["workspaces"]}

    async def _why(self, body: Json) -> Json:
        path_status: Json = to_builtins(await self._context.why(_path(body, "path")))
        return path_status


def _path(body: Json, field: str) -> Path:
    path = Path(first_text(body, field) or ".")
    if not path.is_absolute() or ".." in path.parts:
        raise BadRequest(f"{field} must be an absolute path.", status=422)
    return path


def window_of(headers: Mapping[str, str]) -> str:
    """Return the id that a client gives its window, "" if it gives none."""
    return headers.get(_WINDOW_HEADER, "")[:_MAX_WINDOW_CHARS]


class OpenFolders:
    """Remembers which folders each window has open, as its last chat named them.

    Requests of the same window that do not name them are completed with them. Of too
    many windows, those not used for longest are forgotten.
    """

    def __init__(self, limit: int = _MAX_WINDOWS) -> None:
        self._folders = BoundedMap[str, list[str]](limit)

    def remember(self, headers: Mapping[str, str], body: Json) -> list[str]:
        """Remember the folders that a chat names, if any; return its window's."""
        session = window_of(headers)
        folders = open_folders(body) if session else []
        if folders:
            self._folders[session] = folders
        return folders or self._folders.get(session) or []

    def add_folders(self, headers: Mapping[str, str], body: Json) -> Json:
        """Return a retrieval body with the open folders of its client."""
        folders = self._folders.get(window_of(headers))
        return with_folders(body, folders) if folders else body


@asynccontextmanager
async def open_answers(
    settings: Settings, paths: Paths, roots: Iterable[Path]
) -> AsyncIterator[Callable[[str, Json], Awaitable[Json]]]:
    """Open the index, follow the workspaces and `roots`; yield a caller of services.

    For a command without a daemon: it answers questions about code and about vectors
    in its own process, and makes no vectors.

    Raises:
        CannotStart: the database is damaged, or of a later version.
        IndexInUse: another process has the index open.
    """
    from byok.wiring.embedders import make_idle_plan, make_idle_service

    vectors = make_idle_service(paths)
    async with open_context(settings, paths, roots, vectors) as context:
        await vectors.configure(make_idle_plan(settings), context.open)
        handlers = {**CodeEndpoints(context).handlers, **embed_handlers(vectors)}

        async def answer(service: str, body: Json) -> Json:
            return await handlers[service](body)

        yield answer
