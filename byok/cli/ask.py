"""Ask the running daemon."""

import asyncio

from byok.cli.daemon_client.daemon import find_daemon, talking
from byok.cli.output import tell
from byok.core.chat import Json
from byok.core.daemon.instance import is_held
from byok.core.errors import NotReady
from byok.core.platform.paths import Paths, find_paths


def ask_daemon(service: str, body: Json | None = None) -> Json | None:
    """Return what a Service or a feature answers; None if no daemon is running.

    Raises:
        ByokError: a daemon runs and does not answer, or its own error.
    """
    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
        return None

    async def ask() -> Json:
        async with talking(daemon, paths) as door:
            return await door.answer(service, body or {})

    return asyncio.run(ask())


def refuse_if_silent(paths: Paths) -> None:
    """Do nothing if no daemon runs.

    Raises:
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    if is_held(paths):
        raise NotReady(
            "byok is starting, or hangs: the daemon does not answer.",
            hint=f"Try again. If it stays so, end the process whose pid is in "
            f"{paths.daemon}.",
        )


def tell_not_running() -> None:
    """Say that the output comes from the settings, not from a running daemon."""
    tell("byok is not running; this comes from the settings file.")
