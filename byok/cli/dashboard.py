"""byok dashboard: open the daemon's page in the browser, and show the code for it.

`webbrowser` of the standard library finds the browser. Left alone, it would also start
a text browser in this terminal, and wait until a browser named by BROWSER is closed;
both are avoided here.
"""

import asyncio
import os
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated

import typer

from byok.cli.control import require_daemon
from byok.cli.daemon_client import ask_instance
from byok.cli.terminal import say, tell
from byok.clients.locations import RunPlace, find_run_place
from byok.core.platform.paths import find_paths
from byok.core.platform.programs import find_program
from byok.core.routing import Service

Run = Callable[[Sequence[str]], bool]

_TEXT_BROWSERS = frozenset(
    {"browsh", "carbonyl", "elinks", "links", "links2", "lynx", "w3m", "www-browser"}
)
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_FAIL_SECONDS = 3.0  # a browser that cannot start has ended by then
# Commands that open Windows' browser from WSL; the first is in Debian's package wslu.
_WINDOWS_COMMANDS = (
    ("wslview",),
    ("rundll32.exe", "url.dll,FileProtocolHandler"),
    ("/mnt/c/Windows/System32/rundll32.exe", "url.dll,FileProtocolHandler"),
)


def dashboard(
    link: Annotated[
        bool, typer.Option("--link", help="Print the address instead of opening it.")
    ] = False,
    sign_out: Annotated[
        bool, typer.Option("--sign-out", help="End all sessions of the dashboard.")
    ] = False,
) -> None:
    """Open the dashboard: live requests, cost, conversations, index and settings.

    The page asks for the code that this command shows. It is valid once, for five
    minutes. It also confirms a change of settings or keys, if the page asks for that.
    """
    paths, place = find_paths(), find_run_place(os.environ)
    daemon = require_daemon(paths)
    body = {"sign_out": True} if sign_out else {}
    answer = asyncio.run(ask_instance(daemon, paths, Service.DASHBOARD_CODE, body))
    if sign_out:
        say("All sessions of the dashboard have ended.")
        return
    url = f"{daemon.url}/ui/"
    is_open = not link and open_browser(url, place)
    say(f"The dashboard: {url}")
    say(f"Code: {answer['code']}")
    tell("Enter the code on the page within five minutes. It is for one use.")
    if not is_open:
        for line in advise_link(place, daemon.port):
            tell(line)


def advise_link(place: RunPlace, port: int) -> list[str]:
    """Return advice on how a browser on another machine reaches the page."""
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


def run_detached(command: Sequence[str]) -> bool:
    """Start a browser that outlives this command; False if it ends with an error."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own browser
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # browsers fill the terminal with warnings
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return process.wait(_FAIL_SECONDS) == 0
    except subprocess.TimeoutExpired:
        return True  # the browser shows the page
    except OSError:
        return False


def open_browser(
    url: str,
    place: RunPlace,
    environ: Mapping[str, str] = os.environ,
    *,
    platform: str = sys.platform,
    find: Callable[[str], str | None] = find_program,
    get: Callable[[], webbrowser.BaseBrowser] = webbrowser.get,
    run: Run = run_detached,
) -> bool:
    """Open a page of this machine in a browser of its user; tell whether one was found.

    Behind SSH and in a container there is none: the user's browser is elsewhere.
    """
    if place in (RunPlace.SSH, RunPlace.CONTAINER):
        return False
    if place is RunPlace.WSL:
        return any(
            run([program, *arguments, url])
            for name, *arguments in _WINDOWS_COMMANDS
            if (program := find(name))
        )
    has_display = any(environ.get(name) for name in _DISPLAYS)
    if platform not in ("darwin", "win32") and not has_display:
        return False
    try:
        browser = get()
    except webbrowser.Error:
        return False
    if not isinstance(browser, webbrowser.GenericBrowser):
        return browser.open(url)
    if PurePath(browser.name).name in _TEXT_BROWSERS:
        return False
    return run([browser.name, *(arg.replace("%s", url) for arg in browser.args)])
