"""What agents may ask over MCP, by any transport: messages, tools and their calls."""

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

# One JSON-RPC message, or the error that answers what is none.


def read_message(
    given: object,
) -> JSONRPCRequest | JSONRPCNotification | JSONRPCError | None:
    """Return a message, or the error to answer with; None for a client's response.

    Batches, and ids that are neither texts nor whole numbers, are refused.
    """
    if not isinstance(given, dict):
        return write_error(INVALID_REQUEST, "Invalid Request: not one object")
    id = given.get("id")
    if "id" in given and type(id) not in (str, int):
        return write_error(INVALID_REQUEST, "Invalid Request: no such id")
    if "method" not in given and ("result" in given or "error" in given):
        return None  # byok sends clients no requests
    try:
        message = jsonrpc_message_adapter.validate_python(given, by_name=False)
    except ValidationError:
        message = None
    if isinstance(message, JSONRPCRequest | JSONRPCNotification):
        return message
    return write_error(INVALID_REQUEST, "Invalid Request", id)


def write_error(code: int, message: str, id: str | int | None = None) -> JSONRPCError:
    """Write the error that answers a request; without an id if that is unknown."""
    error = ErrorData(code=code, message=message)
    return JSONRPCError(jsonrpc="2.0", id=id, error=error)


# The tools: descriptions, arguments, and what is asked for each.


LONGEST = 100_000
_WORKSPACE = "workspace"
_INSTRUCTIONS = (
    "byok searches the code of this machine's workspaces with an index that follows "
    "every saved file. Ask codebase-retrieval in words, before you edit code that you "
    "have not seen. Ask find-symbol where a name that you know is defined and used, "
    "before you change it. Ask commit-history when and why code was changed. Search "
    "with text tools only for exact texts. If answers seem incomplete, index-status "
    "tells what is indexed."
)


class ToolRow(NamedTuple):
    """A tool; `field` is its text argument, `make_body` what is asked with that.

    Without one it tells the status. What does not need the index can search without it.
    What needs `memory` is there only while conversations are remembered.
    """

    tool: types.Tool
    field: str
    make_body: Callable[[str], dict[str, Any]]
    needs_index: bool
    needs_memory: bool


def _row(
    name: str,
    description: str,
    field: str = "",
    about: str = "",
    make_body: Callable[[str], dict[str, Any]] = lambda _: {},
    *,
    needs_index: bool = False,
    needs_memory: bool = False,
) -> ToolRow:
    fields = {field: {"type": "string", "description": about}} if field else {}
    where = (
        "The absolute path of a folder in the workspace; needed if there are several."
    )
    schema = {
        "type": "object",
        "properties": {
            **fields,
            _WORKSPACE: {"type": "string", "description": where},
        },
        "required": [*fields],
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
        _row(
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
        _row(
            "find-symbol",
            "Finds where a function, class, method or constant is defined, and the "
            "lines of every file that use it. Use it when you know the name: before "
            "you change, rename or remove something.",
            "name",
            "The name as code writes it, for example: parse_header, RetryPolicy, "
            "Cart::total",
            lambda text: {"symbol": text},
        ),
        _row(
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
        _row(
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
        _row(
            "index-status",
            "Tells which workspaces are indexed, how far, and what is wrong with one.",
        ),
    )
}


# Their calls.

# Models that must fill every argument write these for one that they leave out.
_EMPTY = ("", None)
_NOT_REMEMBERED = (
    "Conversations are not remembered here: the user has to set on = true under "
    "[memory] in byok's settings."
)


class CodeSource(Protocol):
    """Answers about code: the daemon, a client of it, or an index in this process."""

    async def ask(self, service: Service, body: Json) -> Json:
        """Answer a request about code.

        Raises:
            ByokError: it cannot be answered.
        """

    async def remembers(self) -> bool:
        """Tell whether conversations are remembered."""

    async def find_roots(self, workspace: str) -> list[str]:
        """Return the workspaces to search; `workspace` is what the agent named, if any.

        Raises:
            ByokError: it is none, or there are several.
        """

    async def search_text(self, question: str, error: IndexInUse) -> str:
        """Answer without the index, which another process has, or raise the error."""


Report: TypeAlias = Callable[[float, float, str], Awaitable[None]]
_log = logging.getLogger(__name__)


async def call(
    source: CodeSource,
    name: str,
    arguments: Mapping[str, Any] | None,
    report: Report | None = None,
) -> types.CallToolResult:
    """Run a tool; errors are returned as results that the agent can read.

    `report` tells the client how far an index is that is being built.
    """
    given = {key: text for key, text in (arguments or {}).items() if text not in _EMPTY}
    if wrong := _explain_wrong(name, given):
        return _result(wrong, is_error=True)
    try:
        return _result(await _answer(source, _ROWS[name], given, report))
    except ByokError as error:
        _log.info("%s: %s", error.code, error.log_text)
        return _result(error.sentence, is_error=True)
    except OSError as error:  # such as a folder that cannot be written
        _log.exception("the tool failed")
        return _result(from_os_error(error).sentence, is_error=True)
    except Exception:
        _log.exception("the tool failed")
        return _result("Internal error in byok; see its log.", is_error=True)


def _explain_wrong(name: str, given: Mapping[str, Any]) -> str:
    row = _ROWS.get(name)
    if row is None:
        return f"Unknown tool {name[:100]!r}; there are {', '.join(_ROWS)}."
    known = [*row.tool.input_schema["properties"]]
    for key, value in given.items():
        if key not in known:
            there = " and ".join(known)
            return f"Unknown argument {key[:100]!r}: there is {there}."
        if not isinstance(value, str) or not value.strip():
            return f"{key} must be a text."
        if len(value) > LONGEST:
            return f"{key} is longer than {LONGEST:,} characters: use a few sentences."
    if row.field and row.field not in given:
        return f"{row.field} must be a text; it is missing."
    return ""


async def _answer(
    source: CodeSource, row: ToolRow, given: Mapping[str, str], report: Report | None
) -> str:
    workspace = given.get(_WORKSPACE, "")
    if not row.field:
        return await _write_status(source, workspace)
    text = given[row.field]
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


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error)


BUILD_SECONDS, _LOOK_SECONDS = 10.0, 0.25
_BUILDING = ("scanning", "indexing")


async def _wait_until_built(
    source: CodeSource, roots: Sequence[str], report: Report
) -> None:
    """Wait a little for indexes that are being built, and report how far they are.

    Only for a client that wants to be told: others get what can be found by then. What
    is reported grows each time, as the protocol asks for.
    """
    clock = asyncio.get_running_loop().time
    until, last = clock() + BUILD_SECONDS, -1.0
    while clock() < until:
        spaces = (await source.ask(Service.INDEX_STATUS, {}))["workspaces"]
        building = [
            space
            for space in spaces
            if space["phase"] in _BUILDING and space["root"] in roots
        ]
        if not building:
            return
        share = min(space["percentage"] for space in building)
        if share > last:
            last = share
            await report(share, 100.0, "The index is being built.")
        await asyncio.sleep(_LOOK_SECONDS)


async def _write_status(source: CodeSource, workspace: str) -> str:
    status = await source.ask(Service.INDEX_STATUS, {})
    spaces = status["workspaces"]
    if workspace:
        root = choose_root([space["root"] for space in spaces], workspace)
        spaces = [space for space in spaces if space["root"] == root]
    lines = [_describe(space) for space in spaces] or [NO_WORKSPACE]
    return "\n".join([*lines, *filter(None, [status["error"]])])


def _describe(space: Mapping[str, Any]) -> str:
    done, files = space["files_processed"], space["files_tracked"]
    far = f"{files:,} files" if done == files else f"{done:,} of {files:,} files"
    note = f"; {space['note']}" if space["note"] else ""
    return f"{space['root']}: {space['phase']}, {far}{note}"


def make_server(source: CodeSource) -> Server[dict[str, object]]:
    """Return the SDK's server with these tools."""

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
        return await call(source, params.name, params.arguments, report)

    return Server(
        "byok",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )
