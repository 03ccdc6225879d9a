"""byok dashboard: open the daemon's page in the browser, and show the code for it."""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.output import say, tell
from byok.platform.paths import find_paths
from byok.routing import Service

if TYPE_CHECKING:
    from byok.client_settings.run_place import RunPlace
    from byok.daemon.instance import Instance
    from byok.platform.paths import Paths


def dashboard(
    link: Annotated[
        bool, typer.Option("--link", help="Print the address instead of opening it.")
    ] = False,
) -> None:
    """Open the dashboard: live requests, cost, conversations, index and settings.

    The page asks for the code that this command shows. It is valid once, for five
    minutes. It also confirms a change of settings or keys, if the page asks for that.
    """
    from byok.cli.browser import open_browser
    from byok.cli.ensure_service import require_daemon
    from byok.client_settings.run_place import find_run_place

    paths, place = find_paths(), find_run_place(os.environ)
    daemon = require_daemon(paths)
    code = asyncio.run(_make_code(daemon, paths))
    url = f"http://127.0.0.1:{daemon.port}/ui/"
    opens = not link and open_browser(url, place)
    say(f"The dashboard: {url}")
    say(f"Code: {code}")
    tell("Enter the code on the page within five minutes. It is for one use.")
    if not opens:
        for line in advise_link(place, daemon.port):
            tell(line)


async def _make_code(daemon: "Instance", paths: "Paths") -> str:
    from byok.daemon_client.daemon import talking

    async with talking(daemon, paths) as door:
        return str((await door.answer(Service.DASHBOARD_CODE, {}))["code"])


def advise_link(place: "RunPlace", port: int) -> list[str]:
    """Return what a browser on another machine needs to reach this one."""
    from byok.client_settings.run_place import RunPlace

    match place:
        case RunPlace.SSH:
            return [
                "From the computer in front of you, byok is reached through a tunnel. "
                "Keep this running there, then open the address:",
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
