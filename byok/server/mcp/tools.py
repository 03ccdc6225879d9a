"""The MCP server of code search, for any transport: its tools, and the messages."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from byok import __version__
from byok.core.chat import Json
from byok.core.errors import ByokError, IndexInUse, from_os_error
from byok.core.routing import Service
from byok.search.index.files.roots import NO_WORKSPACE, choose_root

MAX_CHARS = 100_000
_WORKSPACE = "workspace"
_INSTRUCTIONS = (
    "byok searches the code of this machine's workspaces with an index that follows "
    "every saved file. Ask codebase-retrieval in words, before you edit code that you "
    "have not seen. Ask find-symbol where a name that you know is defined and used, "
    "before you change it. Ask commit-history when and why code was changed. Search "
    "with text tools only for exact texts. If answers seem incomplete, index-status "
    "tells what is indexed."
)
# Models that must fill every argument write these values for one that they omit.
_OMITTED_VALUES = ("", None)
_NOT_REMEMBERED = (
    "Conversations are not remembered here: the user has to set on = true under "
    "[memory] in byok's settings."
)
Report: TypeAlias = Callable[[float, float, str], Awaitable[None]]
_log = logging.getLogger(__name__)
BUILD_SECONDS, _POLL_SECONDS = 10.0, 0.25
_BUILDING = ("scanning", "indexing")


def read_message(
    value: object,
) -> JSONRPCRequest | JSONRPCNotification | JSONRPCError | None:
    """Return a JSON-RPC message, or the error to answer with; None for a response.

    Batches, and ids that are neither texts nor whole numbers, are refused.
    """
    if not isinstance(value, dict):
        return write_error(INVALID_REQUEST, "Invalid Request: not one object")
    id = value.get("id")
    if "id" in value and type(id) not in (str, int):
        return write_error(INVALID_REQUEST, "Invalid Request: no such id")
    if "method" not in value and ("result" in value or "error" in value):
        return None  # byok sends clients no requests
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        message = None
    if isinstance(message, JSONRPCRequest | JSONRPCNotification):
        return message
    return write_error(INVALID_REQUEST, "Invalid Request", id)


def write_error(code: int, message: str, id: str | int | None = None) -> JSONRPCError:
    """Return the error that answers a request; `id` is None if it is unknown."""
    error = ErrorData(code=code, message=message)
    return JSONRPCError(jsonrpc="2.0", id=id, error=error)


class ToolRow(NamedTuple):
    """A tool; `make_body` makes the body of its request from its text argument `field`.

    The tool without a text argument writes the status. A tool that does not need the
    index can search without it. A tool that needs the memory is listed only while
    conversations are remembered.
    """

    tool: types.Tool
    field: str
    make_body: Callable[[str], dict[str, Any]]
    needs_index: bool
    needs_memory: bool


def _make_row(
    name: str,
    description: str,
    field: str = "",
    field_help: str = "",
    make_body: Callable[[str], dict[str, Any]] = lambda _: {},
    *,
    needs_index: bool = False,
    needs_memory: bool = False,
) -> ToolRow:
    properties = {field: {"type": "string", "description": field_help}} if field else {}
    workspace_help = (
        "The absolute path of a folder in the workspace; needed if there are several."
    )
    schema = {
        "type": "object",
        "properties": {
            **properties,
            _WORKSPACE: {"type": "string", "description": workspace_help},
        },
        "required": [*properties],
        "additionalProperties": False,
    }
    tool = types.Tool(
        name=name,
        title=name.replace("-", " ").capitalize(),
        description=description,
        input_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    return ToolRow(tool, field, make_body, needs_index, needs_memory)


_ROWS: Mapping[str, ToolRow] = {
    row.tool.name: row
    for row in (
        _make_row(
            "codebase-retrieval",
            "Finds the code that matters for a task. Say in natural language what you "
            "want to know or change, with the identifiers, file names or messages you "
            "know of. Write English whatever language the conversation is in, with the "
            "words that code would use. Returns the best excerpts of the workspace as "
            "it is on disk now, with paths and line numbers. Use it before you edit "
            "code that you have not seen, and prefer it to a text search when you do "
            "not know the exact words.",
            "information_request",
            "What you are looking for, in English, for example: where are tool call "
            "arguments repaired, class ToolCallRepair, lenient JSON",
            lambda text: {"information_request": text},
        ),
        _make_row(
            "find-symbol",
            "Finds where a function, class, method or constant is defined, and the "
            "lines of every file that use it. Use it when you know the name: before "
            "you change, rename or remove something.",
            "name",
            "The name as code writes it, for example: parse_header, RetryPolicy, "
            "Cart::total",
            lambda text: {"symbol": text},
        ),
        _make_row(
            "commit-history",
            "Finds the commits whose messages and files match, among the last 3,000 of "
            "the workspace's git repository. Use it to learn when and why code was "
            "changed, and which files a like change touched.",
            "information_request",
            "What the change was about, in the words of a commit message",
            lambda text: {
                "information_request": text,
                "disable_codebase_retrieval": True,
                "enable_commit_retrieval": True,
            },
            needs_index=True,
        ),
        _make_row(
            "conversation-memory",
            "Finds what was said in the user's earlier conversations about this "
            "workspace: questions, answers, and the files they were about. Use it when "
            "the user refers to something that was decided or found out before. It may "
            "be outdated: check it in the code.",
            "information_request",
            "What the conversation was about, in its words",
            lambda text: {
                "information_request": text,
                "disable_codebase_retrieval": True,
                "enable_conversation_retrieval": True,
            },
            needs_index=True,
            needs_memory=True,
        ),
        _make_row(
            "index-status",
            "Tells which workspaces are indexed, how far, and what is wrong with one.",
        ),
    )
}


class CodeSource(Protocol):
    """Answers about code: the daemon, a client of it, or an index in this process."""

    async def ask(self, service: Service, body: Json) -> Json:
        """Answer a request about code.

        Raises:
            ByokError: the request cannot be answered.
        """

    async def remembers(self) -> bool:
        """Tell whether conversations are remembered."""

    async def find_roots(self, workspace: str) -> list[str]:
        """Return the workspaces to search; `workspace` is the agent's argument, or "".

        Raises:
            ByokError: it is no workspace, or it is "" and there are several.
        """

    async def search_text(self, question: str, error: IndexInUse) -> str:
        """Answer without the index, which another process has, or raise `error`."""


async def call_tool(
    source: CodeSource,
    name: str,
    arguments: Mapping[str, Any] | None,
    report: Report | None = None,
) -> types.CallToolResult:
    """Run a tool; errors become results that the agent can read.

    `report` reports the progress of an index that is being built to the client.
    """
    items = (arguments or {}).items()
    supplied = {key: text for key, text in items if text not in _OMITTED_VALUES}
    if wrong := _argument_error(name, supplied):
        return _make_result(wrong, is_error=True)
    try:
        return _make_result(await _answer(source, _ROWS[name], supplied, report))
    except ByokError as error:
        _log.info("%s: %s", error.code, error.log_text)
        return _make_result(error.sentence, is_error=True)
    except OSError as error:  # such as a folder that cannot be written
        _log.exception("the tool failed")
        return _make_result(from_os_error(error).sentence, is_error=True)
    except Exception:
        _log.exception("the tool failed")
        return _make_result("Internal error in byok; see its log.", is_error=True)


def _argument_error(name: str, arguments: Mapping[str, Any]) -> str:
    row = _ROWS.get(name)
    if row is None:
        return f"Unknown tool {name[:100]!r}; there are {', '.join(_ROWS)}."
    known = [*row.tool.input_schema["properties"]]
    for key, value in arguments.items():
        if key not in known:
            there = " and ".join(known)
            return f"Unknown argument {key[:100]!r}: there is {there}."
        if not isinstance(value, str) or not value.strip():
            return f"{key} must be a text."
        if len(value) > MAX_CHARS:
            return (
                f"{key} is longer than {MAX_CHARS:,} characters: use a few sentences."
            )
    if row.field and row.field not in arguments:
        return f"{row.field} must be a text; it is missing."
    return ""


async def _answer(
    source: CodeSource, row: ToolRow, texts: Mapping[str, str], report: Report | None
) -> str:
    workspace = texts.get(_WORKSPACE, "")
    if not row.field:
        return await _write_status(source, workspace)
    text = texts[row.field]
    if row.needs_memory and not await source.remembers():
        return _NOT_REMEMBERED
    try:
        roots = await source.find_roots(workspace)
        if report is not None and not row.needs_memory:
            await _wait_until_built(source, roots, report)
        body = {**row.make_body(text), "workspaces": roots}
        reply = await source.ask(Service.RETRIEVAL, body)
        return str(reply["formatted_retrieval"])
    except IndexInUse as error:
        if row.needs_index:
            raise
        return await source.search_text(text, error)


def _make_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error)


async def _wait_until_built(
    source: CodeSource, roots: Sequence[str], report: Report
) -> None:
    """Wait a little for indexes that are being built, and report their progress.

    This is for clients that want to know the progress; others get an answer from the
    unfinished index. The reported share grows each time, as the protocol requires.
    """
    clock = asyncio.get_running_loop().time
    deadline, last_share = clock() + BUILD_SECONDS, -1.0
    while clock() < deadline:
        spaces = (await source.ask(Service.INDEX_STATUS, {}))["workspaces"]
        building = [
            space
            for space in spaces
            if space["phase"] in _BUILDING and space["root"] in roots
        ]
        if not building:
            return
        share = min(space["percentage"] for space in building)
        if share > last_share:
            last_share = share
            await report(share, 100.0, "The index is being built.")
        await asyncio.sleep(_POLL_SECONDS)


async def _write_status(source: CodeSource, workspace: str) -> str:
    status = await source.ask(Service.INDEX_STATUS, {})
    spaces = status["workspaces"]
    if workspace:
        root = choose_root([space["root"] for space in spaces], workspace)
        spaces = [space for space in spaces if space["root"] == root]
    lines = [_describe_workspace(space) for space in spaces] or [NO_WORKSPACE]
    return "\n".join([*lines, *filter(None, [status["error"]])])


def _describe_workspace(space: Mapping[str, Any]) -> str:
    processed, tracked = space["files_processed"], space["files_tracked"]
    progress = f"{tracked:,} files"
    if processed != tracked:
        progress = f"{processed:,} of {progress}"
    note = f"; {space['note']}" if space["note"] else ""
    return f"{space['root']}: {space['phase']}, {progress}{note}"


def make_server(source: CodeSource) -> Server[dict[str, object]]:
    """Return the SDK's server with byok's tools."""

    async def on_list(
        context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        remembers = await source.remembers()
        rows = [row for row in _ROWS.values() if remembers or not row.needs_memory]
        return types.ListToolsResult(tools=[row.tool for row in rows])

    async def on_call(
        context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        is_watched = "progress_token" in (context.meta or {})
        report = context.session.report_progress if is_watched else None
        return await call_tool(source, params.name, params.arguments, report)

    return Server(
        "byok",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )
