"""Serve one MCP client until it closes the connection."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import Protocol

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from byok import __version__
from byok.errors import ByokError
from byok.mcp.stdio import Descriptors, streams
from byok.mcp.tool import TOOL, Asks, call
from byok.platform.file_errors import of_system

_log = logging.getLogger(__name__)
_END_SECONDS = 1.5
_LOOK_SECONDS = 5.0


class AskingClient(Asks, Protocol):
    """Answers questions, and checks now and then whether a daemon can do so instead."""

    async def look(self) -> None:
        """Open the index, or switch to a daemon that runs now."""


async def serve(
    client: AskingClient,
    own: Descriptors,
    on_end: Callable[[], None] = lambda: None,
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
