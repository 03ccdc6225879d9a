"""byok models: list the models of each upstream and the default model."""

import typer

from byok.cli.ask import ask_daemon, tell_not_running
from byok.cli.command_context import (
    ConfigOption,
    JsonOption,
    UpstreamOption,
    with_services,
)
from byok.cli.output import say_json, say_table, tell
from byok.routing import Service


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="models")(models)


def models(
    upstream: UpstreamOption = "",
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List the models of each upstream and the default model.

    The running daemon is asked. With --upstream or --config, or if no daemon is
    running, the upstreams of the settings are asked.
    """
    from byok.server.daemon_endpoints import catalog

    asked_for_others = bool(upstream or config)
    answer = None if asked_for_others else ask_daemon(Service.CATALOG)
    if answer is None:
        answer = with_services(catalog, config=config, upstream=upstream)
        if not asked_for_others:
            tell_not_running()
    if json:
        ids = [model["id"] for model in answer["models"]]
        say_json({**answer, "models": ids})
        return
    rows = [
        (m["upstream"], m["model"], "default" if m["id"] == answer["default"] else "")
        for m in answer["models"]
    ]
    say_table("upstream", "model", "", rows=rows)
    for failure in answer["failures"].values():
        tell(f"byok: {failure}")
