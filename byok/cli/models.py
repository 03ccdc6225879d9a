"""byok models: the models of each upstream, their known facts, and the defaults."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byok.cli.command_context import (
    ConfigOption,
    JsonOption,
    UpstreamOption,
    ask_or_do,
    load,
    with_services,
)
from byok.cli.terminal import (
    YesOption,
    confirm,
    count_noun,
    say,
    say_answer,
    say_json,
    say_table,
    show_progress,
    tell,
)
from byok.core.chat import Json
from byok.core.errors import ConfigError
from byok.core.routing import Service
from byok.dialects.model_facts import FactSource

if TYPE_CHECKING:
    from byok.upstream.model_table import Update
    from byok.wiring.services import Services

_COLUMNS = ("upstream", "model", "used for", "window", "answer", "$ in / out")
_SOURCE_NAMES = {
    FactSource.LOADED.value: "loaded",
    FactSource.SERVER.value: "list",
    FactSource.FAMILY.value: "family",
}
_OFFER_DAYS = 7  # the age of the table from which an update is offered
_MAX_NAMES = 20  # of changed models
commands = typer.Typer()


@commands.callback(invoke_without_command=True)
def models(
    context: typer.Context,
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
    from byok.server.daemon_endpoints import catalog

    if context.invoked_subcommand is not None:
        return
    answer = ask_or_do(
        Service.CATALOG,
        lambda: with_services(catalog, config=config, upstream=upstream),
        is_elsewhere=bool(upstream or config),
        words="asking the upstreams for their models",
        hidden=json,
    )
    if not json:
        show(answer)
        return
    rows = answer["models"]  # scripts get a list of ids, and the facts by id
    facts = {m["id"]: {**m["facts"], "sources": m["sources"]} for m in rows}
    say_json({**answer, "models": [m["id"] for m in rows], "facts": facts})


def show(answer: Mapping[str, Any]) -> None:
    """Print the models, the failures, and which table of known models was used."""
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
        tell(f"table: {table['source']}, of {table['date']}.")
    age = (date.today() - date.fromisoformat(answer["table"]["date"])).days
    if age >= _OFFER_DAYS and not all(row[-1].startswith("free") for row in rows):
        tell("For the windows and prices of newer models: byok models update")


@commands.command("why")
def why(json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show which rules choose the model of a chat, and which one chose for the last.

    The first rule that holds chooses; those without a model are not in force. The
    running daemon tells the last chats that it answered.
    """
    from byok.server.daemon_endpoints import choices

    async def read(services: "Services") -> Json:
        return choices(services)

    answer = ask_or_do(
        Service.CHOICES,
        lambda: with_services(read, config=config),
        is_elsewhere=config is not None,
    )
    say_answer(answer, show_choices, json=json)


def show_choices(answer: Mapping[str, Any]) -> None:
    """Print the rules in their order, and below them the last choices."""
    rules = [(row["rule"], row["model"] or "-", row["why"]) for row in answer["rules"]]
    say_table("rule", "model", "when", rows=rules)
    if vision := answer["vision"]:
        say(f"Pictures for models that see none are described by {vision}.")
    if last := answer["choices"]:
        say()
        timed = ((datetime.fromtimestamp(row["at"]), row) for row in last)
        rows = [(f"{t:%H:%M:%S}", r["rule"], r["model"], r["why"]) for t, r in timed]
        say_table("last chats", "rule", "model", "why", rows=rows)


@commands.command("update")
def update(
    file: Annotated[
        list[Path] | None,
        typer.Option(
            help="Read a list from a file instead, and fetch nothing: models.dev's "
            "api.json or LiteLLM's model_prices_and_context_window.json; repeatable."
        ),
    ] = None,
    yes: YesOption = False,
    config: ConfigOption = None,
) -> None:
    """Update byok's table of models: their windows, abilities and prices.

    Two public lists are fetched, models.dev's and LiteLLM's, after you are asked.
    Nothing of yours is sent. Where they disagree, the smaller window and the higher
    price count; a single list that changes a fact boldly is not believed. byok uses
    the table at once, also while it runs. If a list cannot be used, the table before
    stays.
    """
    from byok.dialects.known_models import LISTS
    from byok.upstream.model_table import fetch_lists, keep_lists

    settings, paths = load(config)
    if file:
        contents = [_read_list(path) for path in file]
    else:
        from byok.upstream.transport import Route

        urls = " and ".join(public.url for public in LISTS)
        question = f"Fetch {urls}? Nothing of yours is sent."
        confirm(question, "byok models update", yes=yes)
        network = settings.network
        with show_progress("fetching"):
            fetched = asyncio.run(fetch_lists(Route(network.proxy, network.ca_file)))
        for failure in fetched.failures:
            tell(f"byok: {failure}")
        contents = fetched.contents
    show_update(keep_lists(contents, date.today(), paths.known_models))


def show_update(update: "Update") -> None:
    """Print new and changed models, and the facts that the lists disagree on."""
    total = sum(map(len, update.table.rows.values()))
    say(f"byok knows {total:,} models now, by {update.table.source}.")
    _say_names("new", update.new)
    _say_names("changed", update.changed)
    for doubt in update.doubts[:_MAX_NAMES]:
        first, second = (f"{value:,g}" for value in doubt.values)
        say(
            f"In doubt: the {doubt.fact} of {doubt.vendor}/{doubt.model}, {first} or "
            f"{second}; byok uses {doubt.used:,g}."
        )
    if more := update.doubts[_MAX_NAMES:]:
        say(f"And {len(more)} more in doubt.")


def _say_names(what: str, names: Sequence[str]) -> None:
    if names:
        more = ", ..." if len(names) > _MAX_NAMES else ""
        listed = ", ".join(names[:_MAX_NAMES])
        say(f"{count_noun(len(names), 'model')} {what}: {listed}{more}")


def _read_list(path: Path) -> bytes:
    from byok.upstream.model_table import MOST_BYTES

    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{path} is larger than {MOST_BYTES // 2**20} MiB.")
    return content


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
    """Add the source of a value, with "old" for a price of an old table."""
    if not value or not source:
        return value
    old = ", old" if stale and source == FactSource.TABLE else ""
    return f"{value} ({_SOURCE_NAMES.get(source, source)}{old})"


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
    yield from (
        f"{job}s".replace("_", " ") for job, chosen in jobs.items() if chosen == model
    )
