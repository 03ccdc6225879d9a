"""Serve one MCP client; the only tool is `codebase-retrieval`."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from byok import __version__
from byok.cli.mcp_server.stdio import Descriptors, streams
from byok.core.errors import ByokError, of_system

# The only tool, `codebase-retrieval`: description, arguments, result.


_log = logging.getLogger(__name__)
NAME = "codebase-retrieval"
FIELD = "information_request"
LONGEST = 100_000
TOOL = types.Tool(
    name=NAME,
    title="Codebase retrieval",
    description=(
        "Finds the code that matters for a task. Say in natural language what you want "
        "to know or change, with the identifiers, file names or messages you know of. "
        "Write English whatever language the conversation is in, with the words that "
        "code would use. Returns the best excerpts of the workspace as it is on "
        "disk now, with paths and line numbers. Use it before you edit code that you "
        "have not seen, and prefer it to a text search when you do not know the exact "
        "words."
    ),
    input_schema={
        "type": "object",
        "properties": {
            FIELD: {
                "type": "string",
                "description": (
                    "What you are looking for, in English, for example: where are "
                    "tool call arguments repaired, class ToolCallRepair, lenient JSON"
                ),
            }
        },
        "required": [FIELD],
        "additionalProperties": False,
    },
    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
)


class Asks(Protocol):
    """Answers questions about code: a client of the daemon, or this process."""

    async def retrieve(self, question: str) -> str:
        """Answer a question about code with excerpts of it."""


async def call(
    asks: Asks, name: str, arguments: Mapping[str, Any] | None
) -> types.CallToolResult:
    """Run the tool; errors are returned as results that the agent can read."""
    given = dict(arguments or {})
    if wrong := _wrong(name, given):
        return _result(wrong, is_error=True)
    try:
        return _result(await asks.retrieve(given[FIELD]))
    except ByokError as error:
        _log.warning("%s: %s", error.code, error.log_text)
        return _result(error.sentence, is_error=True)
    except OSError as error:  # such as a folder that cannot be written
        _log.exception("the tool failed")
        return _result(of_system(error).sentence, is_error=True)
    except Exception:
        _log.exception("the tool failed")
        return _result("Internal error in byok; see its stderr.", is_error=True)


def _wrong(name: str, given: Mapping[str, Any]) -> str:
    """Return what is wrong with a call, or ""."""
    if name != NAME:
        return f"Unknown tool {name[:100]!r}; the only one is {NAME}."
    unknown = [key for key in given if key != FIELD]
    if unknown:
        return f"Unknown argument {unknown[0][:100]!r}: the only one is {FIELD}."
    request = given.get(FIELD)
    if not isinstance(request, str) or not request.strip():
        return f"{FIELD} must be a text that describes what to look for."
    if len(request) > LONGEST:
        return f"{FIELD} is longer than {LONGEST:,} characters: ask in a few sentences."
    return ""


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error)


_END_SECONDS = 1.5
_LOOK_SECONDS = 5.0


class AskingClient(Asks, Protocol):
    """Answers questions, and checks now and then whether a daemon can do so instead."""

    async def look(self) -> None:
        """Open the index, or switch to a daemon that runs now."""


async def serve(
    client: AskingClient, own: Descriptors, on_end: Callable[[], None] = lambda: None
) -> None:
    """Answer until the client closes the connection or a signal arrives.

    `on_end` is called at that moment.
    """
    async with anyio.create_task_group() as group:

        def stop() -> None:
            on_end()
            group.cancel_scope.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, stop)
        async with streams(own, on_end) as (incoming, outgoing):
            group.start_soon(_keep_up, client)
            server = _server(client)
            options = server.create_initialization_options()
            await server.run(incoming, outgoing, options)
        group.cancel_scope.cancel()


def _server(asks: Asks) -> Server[dict[str, object]]:
    async def on_list(
        context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[TOOL])

    async def on_call(
        context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return await call(asks, params.name, params.arguments)

    return Server(
        "byok", version=__version__, on_list_tools=on_list, on_call_tool=on_call
    )


async def _keep_up(client: AskingClient) -> None:
    """Start indexing before the first question; hand over to a daemon that starts."""
    last_error = ""
    while True:
        try:
            await client.look()
        except (ByokError, OSError) as error:
            known = of_system(error) if isinstance(error, OSError) else error
            if last_error != known.sentence:  # each call reports it too
                last_error = known.sentence
                _log.warning("%s", last_error)
        await asyncio.sleep(_LOOK_SECONDS)


def end_soon(seconds: float = _END_SECONDS) -> None:
    """End the process after `seconds`, whatever still runs: the client is gone.

    The index repeats unfinished work at its next start; workers end by themselves.
    """
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
