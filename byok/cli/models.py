"""byok models: the models of each upstream, what is known of them, and the defaults."""

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from byok.cli.ask import ask_daemon, tell_not_running
from byok.cli.command_context import (
    ConfigOption,
    JsonOption,
    UpstreamOption,
    with_services,
)
from byok.cli.output import say_json, say_table, tell
from byok.dialects.model_facts import FactSource
from byok.routing import Service

_COLUMNS = ("upstream", "model", "used for", "window", "answer", "$ in / out")
_SHORT = {
    FactSource.LOADED.value: "loaded",
    FactSource.SERVER.value: "list",
    FactSource.FAMILY.value: "family",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="models")(models)


def models(
    upstream: UpstreamOption = "",
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List the models of each upstream, what is known about them, and the defaults.

    The window and the longest answer are in tokens, prices in US dollars per million
    tokens. The source of each fact is shown: settings, probe, refusal (an error of the
    upstream), loaded model, server's list, model family, byok's table of models, or
    this machine, on which models are free.

    The running daemon is asked. With --upstream or --config, or if no daemon is
    running, the upstreams in the settings are asked.
    """
    from byok.server.catalog_report import catalog

    asked_for_others = bool(upstream or config)
    answer = None if asked_for_others else ask_daemon(Service.CATALOG)
    if answer is None:
        answer = with_services(catalog, config=config, upstream=upstream)
        if not asked_for_others:
            tell_not_running()
    if json:
        say_json(_report(answer))
        return
    show(answer)


def show(answer: Mapping[str, Any]) -> None:
    """Print the table, what failed, and what table of known models is meant."""
    rows = [*_rows(answer)]
    say_table(*_COLUMNS, rows=rows)
    for row in answer.get("substitutes", ()):
        tell(f"byok: {row['model']} answers instead of the unknown {row['asked']!r}.")
        if row["alias"]:
            tell(f"To choose, set under [routing.aliases]: {row['alias']}")
    for failure in answer["failures"].values():
        tell(f"byok: {failure}")
    if any(f"({FactSource.TABLE}" in cell for row in rows for cell in row):
        table = answer["table"]
        tell(f"table: {table['source']}, published on {table['date']}.")


def _report(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON for scripts: ids as a list, facts and sources by id."""
    rows = answer["models"]
    facts = {m["id"]: {**m["facts"], "sources": m["sources"]} for m in rows}
    return {**answer, "models": [m["id"] for m in rows], "facts": facts}


def _rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    stale = answer["table"]["stale"]
    for model in answer["models"]:
        facts, sources = model["facts"], model["sources"]
        window, output = facts.get("window", 0), facts.get("max_output", 0)
        yield (
            model["upstream"],
            model["model"],
            ", ".join(_uses(answer, model["id"])),
            _with_source(_tokens(window), sources.get("window")),
            _with_source(_tokens(output), sources.get("max_output")),
            _with_source(_price(facts), sources.get("price"), stale=stale),
        )


def _with_source(value: str, source: str | None, *, stale: bool = False) -> str:
    """Add where a value is known from; "old" to a price of an old table."""
    if not value or not source:
        return value
    old = ", old" if stale and source == FactSource.TABLE else ""
    return f"{value} ({_SHORT.get(source, source)}{old})"


def _tokens(number: int) -> str:
    if not number:
        return ""
    if number < 10_000:
        return f"{number:,}"
    if number < 1_000_000:
        return f"{number / 1000:.0f}k"
    return f"{number / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"


def _price(facts: Mapping[str, Any]) -> str:
    price = facts.get("price") or {}
    both = [price.get(name) for name in ("input", "output")]
    if all(dollars is None for dollars in both):
        return ""
    if not any(dollars is None or dollars for dollars in both):
        return "free"
    return " / ".join("?" if dollars is None else f"{dollars:g}" for dollars in both)


def _uses(answer: Mapping[str, Any], model: str) -> Iterator[str]:
    if model == answer["default"]:
        yield "default"
        return
    jobs = answer["jobs"]
    yield from (f"{job}s" for job, chosen in jobs.items() if chosen == model)
