"""byok serve."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.context import ConfigOption, UpstreamOption, load, tell_foreign_variables
from byok.cli.output import say, tell

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from byok.config import Settings
    from byok.paths import Paths
    from byok.server.run import Daemon
    from byok.services import Services


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="serve")(serve)


def serve(
    upstream: UpstreamOption = "",
    model: Annotated[
        str, typer.Option(help="The model that answers when a client names none.")
    ] = "",
    port: Annotated[
        str,
        typer.Option(
            help="Port on 127.0.0.1 and ::1; 0 takes a free one.", metavar="PORT"
        ),
    ] = "",
    workspace: Annotated[
        list[Path] | None,
        typer.Option(help="A folder to index and follow; may be given several times."),
    ] = None,
    ensure: Annotated[
        bool, typer.Option("--ensure", help="Do nothing if the daemon runs already.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Run the daemon until it is told to stop.

    Without --upstream and without settings it uses the first local server that
    answers, else an upstream whose key it finds, else the built-in demo.
    """
    from byok.own_process import keep_secrets_in_memory
    from byok.server.instance import only_instance

    os.umask(0o077)
    keep_secrets_in_memory()
    settings, paths = load(config, {"server": {"port": port}} if port else None)
    if ensure and (url := _running(paths)):
        say(f"byok is listening on {url}")
        return
    tell_foreign_variables()
    with only_instance(paths):
        _check(settings, upstream, model, workspace or [])
        runner = asyncio.Runner(loop_factory=_loop_factory())
        with runner:
            runner.run(_serve(settings, paths, upstream, model, workspace or []))


def _check(
    settings: "Settings", upstream: str, model: str, workspaces: list[Path]
) -> None:
    """Tell what can be known to be wrong before a port is opened."""
    from byok.config import check_settings

    check_settings(settings, upstream, model)
    if workspaces:
        from byok.context.roots import check_root

        for root in workspaces:
            check_root(root)


def _running(paths: "Paths") -> str:
    """Return where the daemon of this user listens, "" where none proves to be it."""
    from byok.local.find import find_daemon

    daemon = find_daemon(paths)
    return f"http://127.0.0.1:{daemon.port}" if daemon else ""


async def _serve(
    settings: "Settings",
    paths: "Paths",
    upstream: str,
    model: str,
    workspaces: list[Path],
) -> None:
    from byok.redact import Redactor
    from byok.server.instance import record
    from byok.server.logs import set_up_logging
    from byok.server.run import run_until_signal

    redactor = Redactor()
    set_up_logging(settings.log.level, paths.log, redactor)

    def services() -> "AbstractAsyncContextManager[Services]":
        from byok.services import open_services

        return open_services(
            settings,
            paths,
            upstream=upstream,
            model=model,
            redactor=redactor,
            roots=workspaces,
        )

    def ready(daemon: "Daemon") -> None:
        record(paths, daemon.port, daemon.instance)
        _announce(daemon.url)
        with contextlib.suppress(OSError):  # nobody reads stderr
            _introduce(daemon.services)

    await run_until_signal(settings, paths, redactor, services, ready)


def _introduce(services: "Services") -> None:
    """Say on stderr which model answers and why, and how to connect a client."""
    default = services.router.default()
    tell(f"upstream: {default.upstream} ({services.choice.reason})")
    tell(f"model:    {default.model}")
    tell("connect:  byok connect vscode | jetbrains | cli | sdk")
    tell("token:    byok token")


def _announce(url: str) -> None:
    """Print the one line that scripts wait for."""
    import sys

    try:
        say(f"byok is listening on {url}")
        sys.stdout.flush()
    except OSError:  # nobody reads it: the daemon is wanted all the same
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    """Use uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
