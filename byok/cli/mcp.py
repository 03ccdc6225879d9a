"""byok mcp."""

import asyncio
import logging
import sys

import typer

from byok.cli.asking import WorkspacesOption, folders, opener
from byok.cli.context import ConfigOption
from byok.cli.output import tell
from byok.paths import find_paths

_PATIENCE = 2.0  # an agent waits


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="mcp")(mcp)


def mcp(workspace: WorkspacesOption = None, config: ConfigOption = None) -> None:
    """Offer code retrieval to an MCP client, on standard input and output.

    The client starts this. It asks the daemon if one runs, else it indexes the folders
    itself; without -w it answers from all declared workspaces.
    """
    if sys.stdin.isatty():
        tell(
            "byok mcp speaks JSON-RPC with an MCP client, which starts it (README). "
            "Ctrl-D ends it; for a question of your own: byok search"
        )
    from byok.mcp.stdio import take_over

    own = take_over()
    from byok.local.client import asking
    from byok.mcp.server import end_soon, serve

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    paths, roots = find_paths(), folders(workspace)

    async def run() -> None:
        async with asking(paths, opener(config), roots, patience=_PATIENCE) as client:
            await serve(client, roots, own, end_soon)

    asyncio.run(run())
