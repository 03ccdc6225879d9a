"""byok service: install, remove, control the system's service, and show its log."""

import os
import time
from collections.abc import Generator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from byok.cli.command_context import ConfigOption, JsonOption, load
from byok.cli.control import (
    EXIT_NOT_RUNNING,
    find_service,
    stop_daemon,
    wait_for_daemon,
)
from byok.cli.daemon_client import ask_daemon, find_daemon
from byok.cli.terminal import say, say_answer, say_text, tell
from byok.clients.service.base import Launch
from byok.clients.service.control import UserService, make_launch
from byok.core.daemon.instance import Instance
from byok.core.daemon.sockets import listen
from byok.core.errors import ByokError, CannotStart, ConfigError
from byok.core.platform.paths import find_paths
from byok.core.routing import Service

if TYPE_CHECKING:
    from byok.settings import Settings

_LINGER = Path("/var/lib/systemd/linger")  # a file for each user who has it enabled
_MAX_TAIL_BYTES = 4 * 2**20
_MAX_LINE_BYTES = 2**20
_POLL_SECONDS = 0.3
_SYSTEMD = Path("/run/systemd/system")

commands = typer.Typer(no_args_is_help=True)


@commands.command("install")
def install(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the files; write and run nothing.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Install byok as a service of your user and start it.

    It is a systemd user unit, a launchd agent or a task of the Task Scheduler, which
    starts at login, and again after a crash. Install it again after moving byok or
    changing its port.
    """
    settings, paths = load(config)
    service = find_service(paths)
    launch = make_launch(paths, settings.server.port, config)
    current = None if dry_run else _check_conflicts(service, launch)
    launch = _fit(service, launch, dry_run=dry_run)
    files = list(service.system.render(launch))
    for file in files:
        say(f"{file.path}:")
        say_text("\n".join(f"    {line}" for line in file.content.splitlines()))
    if dry_run:
        return
    _end_before_kill(service)
    service.install(files, launch)
    daemon = wait_for_daemon(paths, other_than=current.instance if current else "")
    say(f"byok runs as a service on {daemon.url}, from login on.")
    _report_gaps(service, settings)


@commands.command("uninstall")
def uninstall() -> None:
    """Stop the service and remove it; settings, keys and the index stay."""
    service = find_service(find_paths())
    _end_before_kill(service)
    removed = service.uninstall()
    if not removed:
        say("byok is not installed as a service.")
        return
    for name in removed:
        say(f"removed {name}")
    say("byok no longer runs as a service.")
    for path in service.system.paths:
        drop_ins = path.with_name(f"{path.name}.d")  # of systemd: the user's own lines
        if drop_ins.is_dir():
            tell(f"Your own lines for it stay in {drop_ins}")


@commands.command("start")
def start() -> None:
    """Start the installed service."""
    service = find_service(find_paths())
    service.control("start")
    daemon = wait_for_daemon(service.paths)
    say(f"byok is listening on {daemon.url}")


@commands.command("stop")
def stop() -> None:
    """Stop the service until the next login; no request starts it meanwhile.

    Responses in progress have ten seconds to finish.
    """
    service = find_service(find_paths())
    _check_manager(service)
    _end_before_kill(service)
    service.control("stop")
    say("byok's service has ended. Start it: byok service start")


@commands.command("restart")
def restart() -> None:
    """Restart the service, for example after an update of byok."""
    service = find_service(find_paths())
    _check_manager(service)
    previous = find_daemon(service.paths, 0)
    _end_before_kill(service)
    service.control("restart")
    instance = previous.instance if previous else ""
    daemon = wait_for_daemon(service.paths, other_than=instance)
    say(f"byok is listening on {daemon.url}")


@commands.command("status")
def status(json: JsonOption = False) -> None:
    """Show whether the service is installed and runs, and whether byok answers.

    The exit code is 0 if byok answers as the service, else 3.
    """
    facts = _facts(find_service(find_paths()))
    say_answer(facts, _show_facts, json=json)
    if not facts["answers"] or facts["by_hand"]:
        raise typer.Exit(EXIT_NOT_RUNNING)


@commands.command("logs")
def logs(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", help="How many lines.", min=0, max=10_000)
    ] = 50,
) -> None:
    """Show the last lines of byok's log, whatever started it."""
    log = find_paths().log
    if not log.is_file() and not follow:
        tell(f"There is no log yet: {log}")
    with closing(follow_log(log)) as read:
        for line in next(read)[-lines:] if lines else ():
            say_text(line)
        if _SYSTEMD.is_dir():
            tell("Why systemd did not start it: journalctl --user -u byok.service")
        while follow:
            try:
                time.sleep(_POLL_SECONDS)
            except KeyboardInterrupt:
                return
            for line in next(read):
                say_text(line)


def _check_manager(service: UserService) -> None:
    if service.is_installed():
        service.check_system()


def _end_before_kill(service: UserService) -> None:
    """Stop the service's daemon cleanly first, on a system that would kill it."""
    if not service.system.kills:
        return
    daemon = find_daemon(service.paths, 0)
    if daemon is not None and _is_of_service(service, daemon):
        stop_daemon(service.paths)


def _fit(service: UserService, launch: Launch, *, dry_run: bool) -> Launch:
    """Adapt a launch to this machine; a dry run shows the files anyway."""
    try:
        service.check_system()
    except CannotStart as error:
        if not dry_run:
            raise
        tell(error.sentence)
        return launch
    return service.fit(launch)


def _check_conflicts(service: UserService, launch: Launch) -> Instance | None:
    """Return the daemon that the service runs, None if no daemon runs.

    Raises:
        ConfigError: there is no fixed port, or a service for other folders.
        CannotStart: a daemon runs that is not the service's, or the port is taken.
    """
    if not launch.port:
        raise ConfigError(
            "A service needs a fixed port.", hint="Set `port` below [server]."
        )
    service.check_owner()
    daemon = find_daemon(service.paths, 0)
    if daemon is not None and not _is_of_service(service, daemon):
        raise CannotStart(
            f"byok runs already (pid {daemon.pid}, port {daemon.port}), and not as the "
            "service.",
            code="already_running",
            hint="Run: byok stop, then byok service install",
        )
    if not service.is_installed():
        for sock in listen(launch.port):
            sock.close()
    return daemon


def _is_of_service(service: UserService, daemon: Instance) -> bool:
    if not service.is_installed():
        return False
    return service.state().is_of(daemon)


def _report_gaps(service: UserService, settings: "Settings") -> None:
    """Print what this shell has and the service lacks: keys, and a login session."""
    from byok.wiring.key_sources import all_key_lookups  # slow; not for every command

    keys = all_key_lookups(settings, settings.upstreams)
    variables = {name for key in keys for name in key.variables}
    if names := sorted(variables & os.environ.keys()):
        tell(f"The service does not see the keys in {', '.join(names)}.")
        tell("  Store each for it: byok keys set NAME")
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    lingers = user and "/" not in user and (_LINGER / user).exists()
    if service.system.starts_on_request and not lingers:
        tell(
            "It ends when you log out. To keep it running, also after a reboot without"
        )
        tell("  a login: loginctl enable-linger")


def _facts(service: UserService) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "system": service.system.title,
        "installed": service.is_installed(),
        "files": [str(path) for path in service.system.paths],
        "enabled": False,
        "running": False,
        "state": "",
        "waits": False,
        "error": "",
    }
    daemon = find_daemon(service.paths, 0)
    by_hand = daemon is not None
    if facts["installed"]:
        try:
            state = service.state()
        except ByokError as error:
            facts["error"] = error.sentence
        else:
            facts |= {"enabled": state.enabled, "running": state.running}
            facts |= {"state": state.detail, "waits": state.waits}
            by_hand = daemon is not None and not state.is_of(daemon)
    facts |= {"answers": daemon is not None, "by_hand": by_hand}
    if daemon is not None:
        facts |= {"pid": daemon.pid, "port": daemon.port, "since": daemon.started}
        facts["version"] = _version()
    return facts


def _version() -> str:
    try:
        return str((ask_daemon(Service.DAEMON) or {}).get("version", ""))
    except ByokError as error:
        return f"unknown: {error}"


def _show_facts(facts: dict[str, Any]) -> None:
    if facts["installed"]:
        enabled = "starts at login" if facts["enabled"] else "does not start at login"
        line = f"service: installed in {facts['system']}, {enabled}"
        say(f"{line}, {facts['state']}" if facts["state"] else line)
    else:
        say(f"service: not installed in {facts['system']} (byok service install)")
    if facts["error"]:
        say(f"  {facts['error']}")
    if not facts["answers"]:
        if facts["state"].startswith("failed"):
            say("byok does not start. See why: byok config check, byok service logs")
        elif not facts["installed"]:
            say("byok does not run. Start it: byok serve")
        elif facts["waits"]:
            say("byok does not run; the next request starts it.")
        else:
            say("byok does not answer. Start it: byok service start")
        return
    since = datetime.fromtimestamp(facts["since"]).astimezone()
    line = (
        f"byok {facts['version']} answers: pid {facts['pid']}, "
        f"http://127.0.0.1:{facts['port']}, since {since:%Y-%m-%d %H:%M}"
    )
    by_hand = f"{line}, started by hand and not as the service"
    say(by_hand if facts["by_hand"] else line)


def follow_log(path: Path) -> Generator[list[str]]:
    """Yield the lines of the last 4 MiB, then on each call those added since.

    The file need not exist yet; if it is rotated, the new file is read as well.
    """
    file: IO[bytes] | None = None
    partial = b""  # a line whose end has not been written yet
    is_first = True
    try:
        while True:
            if file is None and path.is_file():
                file = path.open("rb")
                if is_first:
                    file.seek(max(0, path.stat().st_size - _MAX_TAIL_BYTES))
            if file is not None:
                partial += file.read(_MAX_TAIL_BYTES)
            is_old = file is not None and not _is_current(file, path)
            if file is not None and is_old:
                partial += file.read(_MAX_TAIL_BYTES)  # written before the rotation
                file.close()
            *lines, partial = partial.split(b"\n")
            if len(partial) > _MAX_LINE_BYTES:  # no line is so long
                lines, partial = [*lines, partial], b""
            if is_old:
                file, partial = None, b""
            is_first = False
            yield [line.decode("utf-8", "replace") for line in lines]
    finally:
        if file is not None:
            file.close()


def _is_current(file: IO[bytes], path: Path) -> bool:
    """Tell whether a path still leads to this file, and the file was not truncated."""
    try:
        at_path, opened = path.stat(), os.fstat(file.fileno())
    except OSError:
        return False
    return os.path.samestat(at_path, opened) and at_path.st_size >= file.tell()
