"""byok serve: check whether the daemon may run, and run it.

The server is loaded once the first line is printed, and the services once the port is
open: on a busy machine that takes seconds, and a client need not wait for services.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from byok.cli.command_context import (
    ConfigOption,
    UpstreamOption,
    load,
    tell_foreign_variables,
)
from byok.cli.completion import complete_model, complete_workspace
from byok.cli.terminal import discard_output, say, tell
from byok.core.chat import Json
from byok.core.daemon.instance import (
    Instance,
    Predecessor,
    only_instance,
    pop_predecessor,
    write_record,
)
from byok.core.daemon.logs import set_up_logging
from byok.core.daemon.sockets import pop_activation
from byok.core.platform.paths import Paths
from byok.core.platform.process import give_back_large_memory, keep_secrets_in_memory
from byok.core.redact import Redactor
from byok.core.routing import Service
from byok.dialects.presets import DEMO

if TYPE_CHECKING:
    from byok.server.control import Source
    from byok.server.run import Daemon, Serving
    from byok.settings import Settings
    from byok.wiring.services import Services


class RequestedOptions(NamedTuple):
    """The options of `byok serve`; an empty value means not given."""

    upstream: str = ""
    model: str = ""
    port: str = ""
    workspaces: tuple[Path, ...] = ()
    config: Path | None = None


def serve(
    upstream: UpstreamOption = "",
    model: Annotated[
        str,
        typer.Option(
            help="The model to use when a client names none.",
            autocompletion=complete_model,
        ),
    ] = "",
    port: Annotated[
        str,
        typer.Option(
            help="Port on 127.0.0.1 and ::1; 0 takes any free port.", metavar="PORT"
        ),
    ] = "",
    workspace: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder to index and follow; repeat for more.",
            autocompletion=complete_workspace,
        ),
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
    options = RequestedOptions(upstream, model, port, tuple(workspace or ()), config)
    if not ensure:
        with contextlib.suppress(OSError):  # nobody reads stderr
            tell("byok starts")
    from byok.server.control import Source
    from byok.server.run import Serving
    from byok.settings import refuse_key

    refuse_key(options.model, "a model")
    os.umask(0o077)
    keep_secrets_in_memory()
    give_back_large_memory()
    overrides = {"server": {"port": options.port}} if options.port else None
    settings, paths = load(options.config, overrides)
    predecessor = pop_predecessor()
    if ensure and predecessor is None and _is_running(paths, options, settings):
        return
    tell_foreign_variables()
    activation = pop_activation()
    file = (options.config or paths.config).absolute()

    def check(settings: "Settings") -> None:
        _check(settings, paths, options)

    source = Source(
        file,
        lambda: load(options.config, overrides)[0],
        check,
        overrides or {},
        {
            **({"server.port": "--port"} if options.port else {}),
            **({"routing.default": "--model"} if options.model else {}),
        },
    )
    if predecessor is not None:
        check(settings)
        _wait_for_predecessor(predecessor, settings)
    with only_instance(paths) as release_lock:
        check(settings)
        serving = Serving(activation, predecessor, release_lock=release_lock)
        running = _serve(serving, settings, paths, options, source)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(running)
    if serving.successor is not None and not activation.notify:
        serving.successor.stand_in(is_first=predecessor is None)
    if serving.again:
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execv(sys.executable, command)  # noqa: S606 - the command of this process


def _wait_for_predecessor(predecessor: Predecessor, settings: "Settings") -> None:
    """Import everything that serving needs, then wait until the old daemon hands over.

    Raises:
        CannotStart: the settings name another port, and that is taken.
    """
    import byok.server.compose
    import byok.wiring.services  # noqa: F401 - these two load nearly everything
    from byok.core.daemon.sockets import listen

    port = predecessor.sockets[0].getsockname()[1]
    if settings.server.port not in (0, port) and not predecessor.has_fixed_port:
        predecessor.sockets = listen(settings.server.port)
    predecessor.wait_for_turn()


def _check(settings: "Settings", paths: Paths, options: RequestedOptions) -> None:
    """Find errors in settings and options before the port is opened."""
    from byok.search.index.files.roots import OwnFolders, check_root
    from byok.settings import check_settings

    check_settings(settings, options.upstream, options.model)
    own_folders = OwnFolders(paths.folders)
    for root in options.workspaces:
        check_root(root, own_folders)


def _is_running(paths: Paths, options: RequestedOptions, settings: "Settings") -> bool:
    """Print where this user's daemon listens; return False if none is running.

    An installed service is started first: two daemons would want the same port.
    """
    from byok.cli.control import start_service
    from byok.cli.daemon_client import find_daemon

    daemon = find_daemon(paths) or start_service(paths)
    if daemon is None:
        return False
    if others := unfulfilled_options(daemon, options, settings):
        tell(f"byok is already running, without these options: {' '.join(others)}")
        tell("  To use them: byok stop, then start it again with them.")
    say(f"byok is listening on {daemon.url}")
    return True


async def _serve(
    serving: "Serving",
    settings: "Settings",
    paths: Paths,
    options: RequestedOptions,
    source: "Source",
) -> None:
    from byok.server.run import DaemonParts, listening

    redactor = Redactor()
    set_up_logging(settings.log.level, paths.log, redactor)

    def services() -> AbstractAsyncContextManager["Services"]:
        from byok.wiring.services import open_services

        return open_services(
            settings,
            paths,
            upstream=options.upstream,
            model=options.model,
            redactor=redactor,
            roots=options.workspaces,
        )

    def ready(daemon: "Daemon") -> None:
        _record(paths, daemon)
        _announce(daemon.url)
        with contextlib.suppress(OSError):  # nobody reads stderr
            _introduce(daemon.services, options)

    def serve(passed: Sequence[socket]) -> "AbstractAsyncContextManager[Daemon]":
        parts = DaemonParts(settings, paths, redactor, services)
        return listening(parts, source=source, inherited=passed)

    await serving.run(serve, ready)


def _record(paths: Paths, daemon: "Daemon", *, is_first: bool = True) -> None:
    """Write the record of where the daemon listens, and retry until that succeeds."""
    if daemon.control.ending.is_set():  # the file may be a successor's by now
        return
    try:
        write_record(paths, daemon.port, daemon.instance)
    except OSError as error:  # such as a full disk: clients are served all the same
        reason = error.strerror or error
        if is_first:
            tell(
                f"Cannot write {paths.daemon} ({reason}): "
                "commands do not find byok yet."
            )
        retry = partial(_record, paths, daemon, is_first=False)
        asyncio.get_running_loop().call_later(daemon.timing.look, retry)


def _introduce(services: "Services", options: RequestedOptions) -> None:
    """Print on stderr the default model, why it was chosen, and the next steps."""
    from byok.upstream.router import PLACEHOLDER  # loaded with the services

    default = services.router.default()
    tell(f"upstream: {default.upstream} ({services.selection.reason})")
    by_list = default.model == PLACEHOLDER
    tell(f"model:    {'from its list (byok models)' if by_list else default.model}")
    if default.upstream == DEMO and not options.upstream:
        tell("next:     byok init finds models and keys, and writes the settings")
    tell("connect:  byok connect vscode | jetbrains | cli | sdk")
    tell("token:    byok token")
    tell("watch:    byok dashboard")


def _announce(url: str) -> None:
    """Print the ready line on stdout, which scripts wait for."""
    try:
        say(f"byok is listening on {url}")
        sys.stdout.flush()
    except OSError:  # stdout is closed; the daemon runs all the same
        discard_output(sys.stdout)


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


def unfulfilled_options(
    daemon: Instance, options: RequestedOptions, settings: "Settings"
) -> list[str]:
    """Return the options that the running daemon lacks, as typed."""
    from byok.cli.code_client import folders
    from byok.cli.daemon_client import ask_daemon

    if options == RequestedOptions():
        return []
    answer = ask_daemon(Service.DAEMON) or {}
    missing = []
    if options.upstream and not _has_upstream(answer, options.upstream, settings):
        missing.append(f"--upstream {options.upstream}")
    model = f":{options.model}"
    if options.model and not f":{answer['model']}".endswith(model):
        missing.append(f"--model {options.model}")
    if options.port not in ("", "0", str(daemon.port)):
        missing.append(f"--port {options.port}")
    if options.config and str(options.config.absolute()) != answer["settings"]["file"]:
        missing.append(f"--config {options.config}")
    if options.workspaces:
        index = ask_daemon(Service.INDEX_STATUS) or {}
        indexed = {space["root"] for space in index["workspaces"]}
        missing += [
            f"--workspace {path}"
            for path, root in zip(
                options.workspaces, folders(options.workspaces), strict=True
            )
            if str(root) not in indexed
        ]
    return missing


def _has_upstream(answer: Json, upstream: str, settings: "Settings") -> bool:
    from byok.settings import upstream_named
    from byok.wiring.apis import base_url_of  # slow: it imports the HTTP client

    name, section = upstream_named(upstream, settings)
    return (name, base_url_of(section)) == (answer["upstream"], answer["base_url"])
