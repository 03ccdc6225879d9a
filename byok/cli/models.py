"""byok models."""

from typing import TYPE_CHECKING

import typer

from byok.cli.context import ConfigOption, JsonOption, UpstreamOption, with_services
from byok.cli.output import say_json, say_table, tell

if TYPE_CHECKING:
    from byok.services import Services

_WAIT_SECONDS = 15.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="models")(models)


def models(
    upstream: UpstreamOption = "",
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List what each upstream offers, and which model is the default."""

    async def work(services: "Services") -> None:
        services.catalog.refresh()
        await services.catalog.settle(_WAIT_SECONDS)
        default = services.router.default()
        listed = services.catalog.listed()
        if default not in listed:
            listed.insert(0, default)
        redact = services.redactor
        failures = {
            n: redact(services.catalog.failure_of(n)) for n in services.upstreams
        }
        if json:
            say_json(
                {
                    "default": default.id,
                    "models": [m.id for m in listed],
                    "failures": {n: f for n, f in failures.items() if f},
                }
            )
            return
        rows = [
            (m.upstream, m.model, "default" if m == default else "") for m in listed
        ]
        say_table("upstream", "model", "", rows=rows)
        for failure in filter(None, failures.values()):
            tell(f"byok: {failure}")

    with_services(work, config=config, upstream=upstream)
