"""byok dashboard: open the daemon's page in the browser."""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.output import say, tell
from byok.platform.paths import find_paths

if TYPE_CHECKING:
    from byok.client_settings.run_place import RunPlace
    from byok.daemon.instance import Instance
    from byok.platform.paths import Paths


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="dashboard")(dashboard)


def dashboard(
    link: Annotated[
        bool, typer.Option("--link", help="Print the link instead of opening it.")
    ] = False,
) -> None:
    """Open the dashboard: live requests, cost, conversations, index and settings.

    The link contains a sign-in code that is valid once, for a minute. Using it a second
    time ends the session, so do not share it.
    """
    from byok.cli.browser import open_browser
    from byok.client_settings.run_place import find_run_place
    from byok.daemon.token import read_token

    paths, place = find_paths(), find_run_place(os.environ)
    daemon = _find(paths)
    code = asyncio.run(_make_code(daemon, read_token(paths.dashboard_token)))
    url = f"http://127.0.0.1:{daemon.port}/ui/#code={code}"
    if not link and open_browser(url, place):
        tell(
            "The dashboard opens in your browser. Nothing there? byok dashboard --link"
        )
        return
    say(url)
    tell("Open this link within a minute; it works once.")
    for line in advise_link(place, daemon.port):
        tell(line)


def _find(paths: "Paths") -> "Instance":
    """Return the daemon; an installed service is started.

    Raises:
        DaemonGone: it is not running.
    """
    from byok.cli.ensure_service import find_or_start
    from byok.errors import DaemonGone

    daemon = find_or_start(paths)
    if daemon is None:
        raise DaemonGone("byok is not running.", hint="Start it: byok serve")
    return daemon


async def _make_code(daemon: "Instance", token: str) -> str:
    from byok.daemon_client.daemon import talking

    async with talking(daemon, token) as door:
        return await door.make_code()


def advise_link(place: "RunPlace", port: int) -> list[str]:
    """Return what a browser on another machine needs to reach this one."""
    from byok.client_settings.run_place import RunPlace

    match place:
        case RunPlace.SSH:
            return [
                "From the computer in front of you, byok is reached through a tunnel. "
                "Keep this running there, then open a new link:",
                f"  ssh -N -L {port}:127.0.0.1:{port} HOST",
            ]
        case RunPlace.CONTAINER:
            return [
                f"A browser outside of this container reaches byok if port {port} is "
                "forwarded as the same port of 127.0.0.1, as editors do, or if the "
                "container shares the host's network (--network=host)."
            ]
        case RunPlace.DESKTOP | RunPlace.WSL:
            return []
