"""byok serve: run the daemon."""

from pathlib import Path
from typing import Annotated

import typer

from byok.cli.command_context import ConfigOption, UpstreamOption
from byok.cli.completion import complete_model, complete_workspace


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
    from byok.cli.daemon_main import RequestedOptions, run  # they load the daemon

    options = RequestedOptions(upstream, model, port, tuple(workspace or ()), config)
    run(options, ensure=ensure)
