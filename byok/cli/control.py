"""byok stop, restart and reload; and starting a daemon for other commands."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer
from msgspec import Struct

from byok.cli.command_context import load
from byok.cli.daemon_client import (
    ask_daemon,
    ask_instance,
    find_daemon,
    find_or_refuse,
)
from byok.cli.terminal import say, show_progress, tell
from byok.core.chat import Json
from byok.core.daemon.instance import Instance, find_instance, is_held
from byok.core.errors import ByokError, CannotStart, DaemonGone, NotReady
from byok.core.platform.paths import Paths, find_paths, make_private
from byok.core.platform.programs import safe_path_entries
from byok.core.routing import Service

if TYPE_CHECKING:
    from byok.clients.service.control import UserService

_log = logging.getLogger(__name__)
T = TypeVar("T")
EXIT_NOT_RUNNING = 3  # the exit code of `systemctl status`
_END_SECONDS = 20.0  # longer than responses in progress may take
_RESTART_SECONDS = 60.0
_POLL_SECONDS = 0.1
END_IT = "To end it: byok stop"
_START_SECONDS = 60.0
_CONNECT_SECONDS = 1.0
_STARTS = "byok starts"
_SECONDS_BETWEEN_STARTS = 60.0


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


def stop_daemon(paths: Paths) -> Instance | None:
    """Stop the running daemon, wait until it has ended, and return its record.

    Raises:
        NotReady: it does not answer, or does not end in time.
    """
    daemon = _request_stop(paths, again=False)
    if daemon is not None:
        error = NotReady("byok is still stopping.")
        words = "byok finishes its answers"
        _wait_for(words, lambda: _has_ended(paths, daemon) or None, _END_SECONDS, error)
    return daemon


def restart() -> None:
    """Restart the running daemon with the options it was started with.

    It stays in the same terminal or service. A second process takes over the port, so
    no connection is refused; the first one finishes its answers, for ten minutes at
    most. On Windows they have ten seconds.
    """
    paths = find_paths()
    daemon = _request_stop(paths, again=True)
    if daemon is None:
        raise not_running()
    error = NotReady(f"byok has not restarted; see its log: {paths.log}.")
    successor = _wait_for(
        "byok starts again",
        lambda: _find_other(paths, daemon.instance),
        _RESTART_SECONDS,
        error,
    )
    say(f"byok is listening on {successor.url}")


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


def _request_stop(paths: Paths, *, again: bool) -> Instance | None:
    """Ask this user's daemon to stop, or to start `again`; return it, None if none."""
    daemon = find_or_refuse(paths)
    if daemon is None:
        return None
    body = {"instance": daemon.instance, "again": again}
    asyncio.run(ask_instance(daemon, paths, Service.STOP, body))
    return daemon


def _has_ended(paths: Paths, daemon: Instance) -> bool:
    current = find_instance(paths)
    if current is None:
        return not is_held(paths)
    return current.instance != daemon.instance


def _find_other(paths: Paths, instance: str) -> Instance | None:
    """Return the running daemon, unless it is this instance."""
    daemon = find_daemon(paths, 0)
    return None if daemon is None or daemon.instance == instance else daemon


def _wait_for(
    words: str, find: Callable[[], T | None], seconds: float, error: NotReady
) -> T:
    """Call `find` until it returns a value; raise `error` after `seconds`."""
    deadline = time.monotonic() + seconds
    with show_progress(words):
        while (value := find()) is None:
            if time.monotonic() >= deadline:
                raise error
            time.sleep(_POLL_SECONDS)
    return value


def find_or_start(paths: Paths) -> Instance | None:
    """Return the daemon; if none runs, start the installed service and return its own.

    Raises:
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    return find_or_refuse(paths) or start_service(paths)


def require_daemon(paths: Paths, *, start: bool = False) -> Instance:
    """Return the daemon that passed the challenge, starting an installed service.

    With `start`, a daemon is started in the background if there is no service. The
    token may be shown only together with the address of this daemon.

    Raises:
        CannotStart: another program listens on its port.
        DaemonGone: it is not running.
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    daemon = find_or_start(paths)
    if daemon is not None:
        return daemon
    port = load()[0].server.port
    if is_taken(port):
        raise _foreign_program_error(port)
    if start:
        daemon = start_in_background(paths, port)
        tell(f"byok runs in the background now. {END_IT}")
        return daemon
    raise not_running()


def require_answer(service: str, body: Json | None = None) -> Json:
    """Return the answer of a Service or a feature.

    Raises:
        DaemonGone: no daemon is running.
        ByokError: as in `ask_daemon`.
    """
    if (answer := ask_daemon(service, body)) is None:
        raise not_running()
    return answer


def not_running() -> DaemonGone:
    """Return the error that no daemon runs; its hint is the command that starts one."""
    start = "service start" if is_started_by_requests(find_paths()) else "serve"
    return DaemonGone("byok is not running.", hint=f"Start it: byok {start}")


def refuse_stranger(paths: Paths) -> None:
    """Check that no program other than this user's daemon listens at its port.

    Raises:
        CannotStart: another program does.
    """
    if find_daemon(paths) is not None:
        return
    port = load()[0].server.port
    # A service manager that waits for the first request is no stranger.
    if is_taken(port) and find_or_start(paths) is None:
        raise _foreign_program_error(port)


def _foreign_program_error(port: int) -> CannotStart:
    return CannotStart(
        f"Another program listens on port {port}. It is not your byok.",
        code="stranger_on_port",
        hint="End it, or choose another port for byok: server.port. If clients were "
        "pointed at this port, it may have their token: byok token rotate",
    )


def is_taken(port: int) -> bool:
    """Tell whether a program accepts connections at a port of this machine."""
    return port > 0 and any(_answers(host, port) for host in ("127.0.0.1", "::1"))


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except TimeoutError:
        return True  # it listens, and is busy
    except OSError:
        return False
    return True


def find_service(paths: Paths) -> "UserService":
    """Return the service of this user, installed or not."""
    from byok.clients.service.control import UserService  # slow; rarely needed

    return UserService.of_this_machine(paths)


def start_service(paths: Paths) -> Instance | None:
    """Start the service if one is installed for these paths; return its daemon.

    If it does not start, print that on stderr: the caller can start a daemon itself.
    """
    try:
        service = find_service(paths)
        if not service.is_installed():
            return None
        service.control("start")
        return wait_for_daemon(paths)
    except ByokError as error:
        tell(f"byok's service did not start: {error.sentence}")
        return None


def start_in_background(paths: Paths, port: int) -> Instance:
    """Start a daemon that outlives this command.

    Raises:
        CannotStart: the port is taken.
        NotReady: it does not answer within a minute.
    """
    from byok.core.daemon.sockets import listen

    for sock in listen(port):
        sock.close()
    starter = Starter(daemon_command(None), paths.state_dir)
    starter.start()
    error = NotReady("byok did not start.", hint="See why: byok serve")
    return _wait_for(_STARTS, lambda: find_daemon(paths, 0), _START_SECONDS, error)


def is_started_by_requests(paths: Paths) -> bool:
    """Tell whether a service is installed that a request starts, as with systemd."""
    try:
        service = find_service(paths)
        return service.system.starts_on_request and service.is_installed()
    except ByokError:  # byok cannot be a service of this system
        return False


def wait_for_daemon(paths: Paths, *, other_than: str = "") -> Instance:
    """Return the daemon once it passes the challenge; not the instance `other_than`.

    Raises:
        NotReady: it does not within a minute.
    """
    error = NotReady(
        "The service was started, and byok does not answer.",
        code="service",
        hint="See why: byok service logs",
    )
    return _wait_for(
        _STARTS, lambda: _find_other(paths, other_than), _START_SECONDS, error
    )


def daemon_command(config: Path | None) -> list[str]:
    """Return the command that starts a daemon unless one runs.

    `-P` keeps Python from importing modules of the current folder.
    """
    options = ["--config", str(config.absolute())] if config else []
    return [sys.executable, "-P", "-m", "byok", "serve", "--ensure", *options]


class Starter(Struct, eq=False):
    """Starts a daemon at most once per `pause` seconds; does not check if one runs."""

    command: Sequence[str]
    folder: Path
    pause: float = _SECONDS_BETWEEN_STARTS
    clock: Callable[[], float] = time.monotonic
    _last_try: float | None = None
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it unless that was tried within the pause; do not wait for it."""
        if self._last_try is not None and self.clock() - self._last_try < self.pause:
            return
        self._last_try = self.clock()
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            _log.warning("the daemon ended (exit %d); see `byok serve`", code)
        make_private(self.folder)
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                self.command,
                cwd=self.folder,
                # PATH may have folders of the project that this process was started in.
                env={
                    **os.environ,
                    "PATH": os.pathsep.join(map(str, safe_path_entries())),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                creationflags=flags,
            )
        except OSError as error:
            _log.warning("the daemon did not start: %s", error)
