"""byok service: install, remove and control the daemon as a service of the system."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.command_context import ConfigOption, load
from byok.cli.control import stop_daemon
from byok.cli.ensure_service import wait_for_daemon
from byok.cli.output import say, say_text, tell
from byok.cli.service_log import logs
from byok.cli.service_status import is_of, status
from byok.errors import CannotStart, ConfigError
from byok.platform.paths import Paths, find_paths

if TYPE_CHECKING:
    from byok.daemon.instance import Instance
    from byok.service.base import Launch, ServiceFile
    from byok.service.control import UserService

_LINGER = Path("/var/lib/systemd/linger")


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        help="Run byok as a service: from login on, and again after a crash.",
        no_args_is_help=True,
    )
    group.command(name="install")(install)
    group.command(name="uninstall")(uninstall)
    group.command(name="start")(start)
    group.command(name="stop")(stop)
    group.command(name="restart")(restart)
    group.command(name="status")(status)
    group.command(name="logs")(logs)
    app.add_typer(group, name="service")


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
    from byok.service.choose import make_launch

    settings, paths = load(config)
    service = _service(paths)
    launch = make_launch(paths, settings.server.port, config)
    before = None if dry_run else _check_place(service, launch)
    launch = _fit(service, launch, dry_run=dry_run)
    files = list(service.system.render(launch))
    _show(files)
    if dry_run:
        return
    _end_before_kill(service)
    service.install(files, launch)
    daemon = wait_for_daemon(paths, other_than=before.instance if before else "")
    say(f"byok runs as a service on http://127.0.0.1:{daemon.port}, from login on.")
    _advise(service)


def uninstall() -> None:
    """Stop the service and remove it; settings, keys and the index stay."""
    service = _service(find_paths())
    _end_before_kill(service)
    gone = service.uninstall()
    if not gone:
        say("byok is not installed as a service.")
        return
    for name in gone:
        say(f"removed {name}")
    say("byok no longer runs as a service.")
    for path in service.system.paths:
        own = path.with_name(f"{path.name}.d")
        if own.is_dir():
            tell(f"Your own lines for it stay in {own}")


def start() -> None:
    """Start the installed service."""
    service = _service(find_paths())
    service.start()
    daemon = wait_for_daemon(service.paths)
    say(f"byok is listening on http://127.0.0.1:{daemon.port}")


def stop() -> None:
    """Stop the service until the next login; no request starts it meanwhile.

    Responses in progress have ten seconds to finish.
    """
    service = _service(find_paths())
    _check_manager(service)
    _end_before_kill(service)
    service.stop()
    say("byok's service has ended. Start it: byok service start")


def restart() -> None:
    """Restart the service, for example after an update of byok."""
    service = _service(find_paths())
    _check_manager(service)
    before = _find(service.paths)
    _end_before_kill(service)
    service.restart()
    other = before.instance if before else ""
    daemon = wait_for_daemon(service.paths, other_than=other)
    say(f"byok is listening on http://127.0.0.1:{daemon.port}")


def _service(paths: Paths) -> "UserService":
    from byok.service.control import UserService

    return UserService.of_this_machine(paths)


def _find(paths: Paths) -> "Instance | None":
    from byok.daemon_client.find import find_daemon

    return find_daemon(paths, 0)


def _check_manager(service: "UserService") -> None:
    if service.is_installed():
        service.check_system()


def _end_before_kill(service: "UserService") -> None:
    """Let the service's daemon end in order where the system would not."""
    if not service.system.kills:
        return
    daemon = _find(service.paths)
    if daemon is not None and _is_kept(service, daemon):
        stop_daemon(service.paths)


def _fit(service: "UserService", launch: "Launch", *, dry_run: bool) -> "Launch":
    """Return what this machine can do; a dry run shows the files anyway."""
    try:
        service.check_system()
    except CannotStart as error:
        if not dry_run:
            raise
        tell(error.sentence)
        return launch
    return service.fit(launch)


def _check_place(service: "UserService", launch: "Launch") -> "Instance | None":
    """Return the daemon that the service runs; refuse where another one is.

    Raises:
        ConfigError: there is no fixed port, or a service for other folders.
        CannotStart: a daemon runs that is not the service's, or the port is taken.
    """
    from byok.daemon.sockets import listen

    if not launch.port:
        raise ConfigError(
            "A service needs a fixed port.", hint="Set `port` below [server]."
        )
    service.check_owner()
    daemon = _find(service.paths)
    if daemon is not None and not _is_kept(service, daemon):
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


def _is_kept(service: "UserService", daemon: "Instance") -> bool:
    """Tell whether a daemon is the one that the service runs."""
    if not service.is_installed():
        return False
    return is_of(service.state(), daemon)


def _show(files: "list[ServiceFile]") -> None:
    for file in files:
        say(f"{file.path}:")
        say_text("\n".join(f"    {line}" for line in file.content.splitlines()))


def _advise(service: "UserService") -> None:
    """Tell what the service lacks that this shell has."""
    from byok.dialects.presets import PRESETS

    known = {preset.key_env for preset in PRESETS.values() if preset.key_env}
    names = sorted(
        name for name in os.environ if name in known or name.startswith("BYOK_KEY_")
    )
    if names:
        tell(f"The service does not see the keys in {', '.join(names)}.")
        tell("  Store each for it: byok keys set NAME")
    if service.system.starts_on_request and not _lingers():
        tell(
            "It ends when you log out. To keep it running, also after a reboot without"
        )
        tell("  a login: loginctl enable-linger")


def _lingers() -> bool:
    name = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    return bool(name) and "/" not in name and (_LINGER / name).exists()
