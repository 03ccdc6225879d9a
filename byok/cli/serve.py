"""byok serve: run the daemon."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.command_context import (
    ConfigOption,
    UpstreamOption,
    load,
    tell_foreign_variables,
)
from byok.cli.ensure import RequestedOptions, unfulfilled_options
from byok.cli.ensure_service import start_service
from byok.cli.output import say, tell

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from byok.config import Settings
    from byok.daemon.handover import Predecessor
    from byok.platform.paths import Paths
    from byok.server.control import Source
    from byok.server.run import Daemon, Serving
    from byok.wiring.services import Services


def serve(
    upstream: UpstreamOption = "",
    model: Annotated[
        str, typer.Option(help="The model to use when a client names none.")
    ] = "",
    port: Annotated[
        str,
        typer.Option(
            help="Port on 127.0.0.1 and ::1; 0 takes any free port.", metavar="PORT"
        ),
    ] = "",
    workspace: Annotated[
        list[Path] | None,
        typer.Option(help="A folder to index and follow; repeat for more."),
    ] = None,
    ensure: Annotated[
        bool, typer.Option("--ensure", help="Succeed if the daemon already runs.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Run the daemon until it is stopped.

    Without --upstream and without settings it uses the first local server that
    responds, else an upstream whose key it finds, else the built-in demo.
    """
    from byok.daemon.activation import take_activation
    from byok.daemon.handover import take_predecessor
    from byok.daemon.instance import only_instance
    from byok.platform.process import give_back_large_memory, keep_secrets_in_memory
    from byok.server.control import Source
    from byok.server.run import Serving

    os.umask(0o077)
    keep_secrets_in_memory()
    give_back_large_memory()
    overrides = {"server": {"port": port}} if port else None
    settings, paths = load(config, overrides)
    options = RequestedOptions(upstream, model, port, tuple(workspace or ()), config)
    before = take_predecessor()
    if ensure and before is None and _runs(paths, options, settings):
        return
    tell_foreign_variables()
    activation = take_activation()
    file = (config or paths.config).absolute()

    def check(settings: "Settings") -> None:
        _check(settings, paths, upstream, model, workspace or [])

    source = Source(
        file,
        lambda: load(config, overrides)[0],
        check,
        overrides or {},
        {
            **({"server.port": "--port"} if port else {}),
            **({"routing.default": "--model"} if model else {}),
        },
    )
    if before is not None:
        check(settings)
        _wait_for_turn(before, settings)
    with only_instance(paths) as release_lock:
        check(settings)
        serving = Serving(activation, before, release_lock=release_lock)
        running = _serve(
            *(serving, settings, paths, upstream, model, workspace or [], source)
        )
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(running)
    if serving.successor is not None and not activation.notify:
        serving.successor.stand_in(is_first=before is None)
    if serving.again:
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execv(sys.executable, command)  # noqa: S606 - as it was started


def _wait_for_turn(before: "Predecessor", settings: "Settings") -> None:
    """Load what serving needs, then wait until the daemon of now has let go.

    Raises:
        CannotStart: the settings name another port, and that is taken.
    """
    import byok.server.compose
    import byok.wiring.services  # noqa: F401 - these two load nearly everything
    from byok.daemon.sockets import listen

    own = before.sockets[0].getsockname()[1]
    if settings.server.port not in (0, own) and not before.has_fixed_port:
        before.sockets = listen(settings.server.port)
    before.wait_for_turn()


def _check(
    settings: "Settings",
    paths: "Paths",
    upstream: str,
    model: str,
    workspaces: list[Path],
) -> None:
    """Find errors in settings and options before the port is opened."""
    from byok.config import check_settings

    check_settings(settings, upstream, model)
    if workspaces:
        from byok.index.files.roots import OwnFolders, check_root

        own = OwnFolders(paths.folders)
        for root in workspaces:
            check_root(root, own)


def _runs(paths: "Paths", options: RequestedOptions, settings: "Settings") -> bool:
    """Print where this user's daemon listens; False if none is running.

    An installed service is started: two daemons would want the same port.
    """
    from byok.daemon_client.find import find_daemon

    daemon = find_daemon(paths) or start_service(paths)
    if daemon is None:
        return False
    if others := unfulfilled_options(daemon, options, settings):
        tell(f"byok is already running, without these options: {' '.join(others)}")
        tell("  To use them: byok stop, then start it again with them.")
    say(f"byok is listening on http://127.0.0.1:{daemon.port}")
    return True


async def _serve(
    serving: "Serving",
    settings: "Settings",
    paths: "Paths",
    upstream: str,
    model: str,
    workspaces: list[Path],
    source: "Source",
) -> None:
    from byok.daemon.instance import write_record
    from byok.daemon.logs import set_up_logging
    from byok.redact import Redactor

    redactor = Redactor()
    set_up_logging(settings.log.level, paths.log, redactor)

    def services() -> "AbstractAsyncContextManager[Services]":
        from byok.wiring.services import open_services

        return open_services(
            settings,
            paths,
            upstream=upstream,
            model=model,
            redactor=redactor,
            roots=workspaces,
        )

    def ready(daemon: "Daemon") -> None:
        try:
            write_record(paths, daemon.port, daemon.instance)
        except OSError as error:  # such as a full disk: clients are served all the same
            why = error.strerror or error
            tell(f"Cannot write {paths.daemon} ({why}): commands will not find byok.")
        _announce(daemon.url)
        with contextlib.suppress(OSError):  # nobody reads stderr
            _introduce(daemon.services)

    await serving.run(settings, paths, redactor, services, ready, source)


def _introduce(services: "Services") -> None:
    """Print on stderr the default model, why it was chosen, and the next steps."""
    from byok.upstream.router import PLACEHOLDER

    default = services.router.default()
    tell(f"upstream: {default.upstream} ({services.selection.reason})")
    by_list = default.model == PLACEHOLDER
    tell(f"model:    {'from its list (byok models)' if by_list else default.model}")
    tell("connect:  byok connect vscode | jetbrains | cli | sdk")
    tell("token:    byok token")
    tell("watch:    byok dashboard")


def _announce(url: str) -> None:
    """Print the ready line on stdout, which scripts wait for."""
    try:
        say(f"byok is listening on {url}")
        sys.stdout.flush()
    except OSError:  # stdout is closed; the daemon runs all the same
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    """Return uvloop's event loop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
