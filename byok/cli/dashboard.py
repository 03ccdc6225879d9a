"""byok dashboard: open the daemon's page in the browser."""

import asyncio
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.ask import refuse_if_silent
from byok.cli.output import say, tell
from byok.platform.paths import find_paths

if TYPE_CHECKING:
    from byok.daemon.instance import Instance


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="dashboard")(dashboard)


def dashboard(
    link: Annotated[
        bool, typer.Option("--link", help="Print the link; open no browser.")
    ] = False,
) -> None:
    """Open the dashboard: live requests, cost, conversations, index and settings.

    The link contains a code for one sign-in within a minute. A second use of it ends
    the session, so do not share it.
    """
    from byok.daemon.token import read_token
    from byok.daemon_client.find import find_daemon
    from byok.errors import DaemonGone

    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
        raise DaemonGone("byok is not running.", hint="Start it: byok serve")
    code = asyncio.run(_make_code(daemon, read_token(paths.dashboard_token)))
    url = f"http://127.0.0.1:{daemon.port}/ui/#code={code}"
    if not link and webbrowser.open(url):
        tell("The dashboard opens in your browser.")
    else:
        say(url)
        tell("Open this link within a minute; it works once.")


async def _make_code(daemon: "Instance", token: str) -> str:
    from byok.daemon_client.daemon import talking

    async with talking(daemon, token) as door:
        return await door.make_code()
