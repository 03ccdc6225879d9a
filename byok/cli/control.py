"""byok stop, byok restart, byok reload: control the running daemon."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from byok.cli.ask import ask_daemon, refuse_if_silent
from byok.cli.ensure_service import is_started_by_requests
from byok.cli.output import say, tell
from byok.errors import NotReady
from byok.platform.paths import Paths, find_paths
from byok.routing import Service

if TYPE_CHECKING:
    from byok.daemon.instance import Instance

EXIT_NOT_RUNNING = 3  # as `systemctl status` has it
_END_SECONDS = 20.0  # longer than responses in progress may take
_START_SECONDS = 60.0
_PAUSE = 0.1


def stop() -> None:
    """Stop the running daemon and wait until it has ended.

    Responses in progress have ten seconds to finish.
    """
    paths = find_paths()
    daemon = stop_daemon(paths)
    if daemon is None:
        say("byok is not running.")
        return
    say(f"byok has ended (pid {daemon.pid}).")
    if is_started_by_requests(paths):
        tell("Its service starts it again at the next request.")
        tell("  To end that too: byok service stop")


def stop_daemon(paths: Paths) -> "Instance | None":
    """Stop the running daemon, wait until it has ended, and return what it was.

    Raises:
        NotReady: it does not answer, or does not end in time.
    """
    daemon = _request_stop(paths, again=False)
    if daemon is not None:
        _wait(lambda: _is_over(paths, daemon), _END_SECONDS, "is still stopping")
    return daemon


def restart() -> None:
    """Restart the running daemon with the options it was started with.

    It stays in the same terminal or service. A second process takes over the port, so
    no connection is refused; the first one finishes its answers, for ten minutes at
    most. On Windows they have ten seconds.
    """
    from byok.daemon_client.find import find_daemon

    paths = find_paths()
    daemon = _request_stop(paths, again=True)
    if daemon is None:
        say("byok is not running. Start it: byok serve")
        raise typer.Exit(EXIT_NOT_RUNNING)

    def runs_again() -> bool:
        now = find_daemon(paths, 0)
        return now is not None and now.instance != daemon.instance

    _wait(runs_again, _START_SECONDS, f"has not restarted; see its log: {paths.log}")
    now = find_daemon(paths)
    say(f"byok is listening on http://127.0.0.1:{now.port if now else daemon.port}")


def reload() -> None:
    """Make the running daemon read its settings and keys again.

    Responses in progress continue. A changed settings file is also noticed without this
    command, within a few seconds.
    """
    answer = ask_daemon(Service.RELOAD)
    if answer is None:
        say("byok is not running; it reads its settings when it starts.")
        raise typer.Exit(EXIT_NOT_RUNNING)
    say(f"byok uses the settings of {answer['file']}.")
    if answer["restart"]:
        tell(f"These need a restart (byok restart): {', '.join(answer['restart'])}")


def _request_stop(paths: Paths, *, again: bool) -> "Instance | None":
    """Ask this user's daemon to stop, if it passes the challenge."""
    from byok.daemon_client.daemon import talking
    from byok.daemon_client.find import find_daemon

    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
        return None

    async def request_stop() -> None:
        async with talking(daemon, paths) as door:
            body = {"instance": daemon.instance, "again": again}
            await door.answer(Service.STOP, body)

    asyncio.run(request_stop())
    return daemon


def _is_over(paths: Paths, daemon: "Instance") -> bool:
    from byok.daemon.instance import find_instance, is_held

    now = find_instance(paths)
    return not is_held(paths) if now is None else now.instance != daemon.instance


def _wait(is_so: Callable[[], bool], seconds: float, else_it: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise NotReady(f"byok {else_it}.")
        time.sleep(_PAUSE)
