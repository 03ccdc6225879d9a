"""byok mcp: serve code retrieval to an MCP client over standard input and output."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from byok.cli.code_client import Agent, WorkspacesOption, folders, index_opener
from byok.cli.command_context import ConfigOption, load
from byok.cli.daemon_client import LocalClient
from byok.cli.terminal import tell
from byok.core.platform.paths import find_paths

_LOCK_SECONDS = 2.0  # for the index of another process; short, as an agent waits


def mcp(
    workspace: WorkspacesOption = None,
    daemon: Annotated[
        bool,
        typer.Option(
            help="If another process has the index open: start the daemon, or search "
            "without the index."
        ),
    ] = True,
    config: ConfigOption = None,
) -> None:
    """Serve code search to an MCP client over standard input and output.

    The MCP client starts this command. It uses the running daemon, or indexes the
    folders itself. Without -w it serves the project of the current folder.
    """
    if sys.stdin.isatty():
        tell(
            "byok mcp speaks JSON-RPC and is started by an MCP client "
            "(see docs/search.md). "
            "Press Ctrl-D to end it. To search from here: byok search"
        )
    from byok.cli.mcp_server import take_over

    descriptors = take_over()
    from byok.cli.control import Starter, daemon_command
    from byok.cli.mcp_server import end_soon, serve

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    paths, requested = find_paths(), folders(workspace)
    starter = Starter(daemon_command(config), paths.state_dir)

    async def read_text(question: str, folders: Sequence[Path]) -> str:
        from byok.wiring.services import search_text

        return await search_text(*load(config), requested, question, folders)

    async def run() -> None:
        open_index = index_opener(config)
        async with LocalClient(
            paths, open_index, requested, patience=_LOCK_SECONDS
        ) as client:
            agent = Agent(
                client,
                requested,
                Path.cwd().resolve(),
                read_text=read_text,
                start=starter.start if daemon else lambda: None,
            )
            await serve(agent, descriptors, end_soon)

    asyncio.run(run())
