"""byok probe: test what a model supports, and store the results as its profile."""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import orjson
import typer

from byok.cli.command_context import ConfigOption, JsonOption, load
from byok.cli.completion import complete_target
from byok.cli.terminal import (
    YesOption,
    confirm,
    count_noun,
    say,
    say_json,
    say_table,
    show_progress,
    tell,
)
from byok.core.errors import ByokError, ConfigError, UpstreamError
from byok.core.platform.installation import quote
from byok.core.platform.paths import Paths
from byok.core.redact import Redactor
from byok.core.routing import split_id
from byok.core.suggest import did_you_mean
from byok.dialects.model_facts import ModelFacts, write_facts

if TYPE_CHECKING:
    from byok.settings import Settings, UpstreamSettings
    from byok.upstream.client import HttpUpstream
    from byok.upstream.model_facts import Profile, Profiles
    from byok.upstream.probe.asking import Prober
    from byok.upstream.probe.cases import ProbeCase
    from byok.upstream.probe.report import ProbeResult

_COLUMNS = ("tried", "result", "", "requests", "tokens in", "out", "seconds")


class ProbeTarget(NamedTuple):
    """The upstream and the model to probe; the model may be ""."""

    name: str
    section: "UpstreamSettings"
    model: str


def find_target(words: str, settings: "Settings") -> ProbeTarget:
    """Return the upstream and model that a user names, by default the default one.

    Raises:
        ConfigError: there is no such upstream; the hint names a similar one.
    """
    from byok.settings import upstream_named, upstream_names  # slow for completion

    target = settings.routing.meant_by(words or settings.routing.default)
    name, _, model = target.partition("/")
    if "://" in target:
        name, model = target, ""
    name, model = split_id(target) or (
        name or next(iter(settings.upstreams), ""),
        model,
    )
    if not name:
        raise ConfigError(
            "There is no upstream in the settings.",
            hint="Name one, such as: byok probe ollama",
        )
    try:
        return ProbeTarget(*upstream_named(name, settings), model)
    except ConfigError as error:
        names = upstream_names(settings.upstreams)
        is_address = "://" in name or name.rpartition(":")[2].isdecimal()
        if name in names or is_address:
            raise
        guess = did_you_mean(name, names)
        raise error.with_hint(
            guess or f"A model is named with its upstream: byok probe UPSTREAM/{name}"
        ) from None


def probe(
    words: Annotated[
        str,
        typer.Argument(
            help="An upstream, UPSTREAM/MODEL, or the id of a model.",
            metavar="[UPSTREAM[/MODEL]]",
            autocompletion=complete_target,
        ),
    ] = "",
    yes: YesOption = False,
    overflow: Annotated[
        bool, typer.Option("--overflow", help="Also exceed the context window.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Show earlier results; send nothing.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="FILE", help="Write the results, without secrets."
        ),
    ] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Test what a model supports, with a few small requests.

    From then on byok uses the results, before what it knows of the model's family.
    """
    settings, paths = load(config)
    target = find_target(words, settings)
    if show or export:
        show_profiles(target, settings, paths, export=export, json=json)
        return
    from byok.wiring.key_sources import make_ladder
    from byok.wiring.upstreams import open_probed

    async def run() -> "tuple[Profile, list[ProbeResult]]":
        ladder, redactor = make_ladder(paths), Redactor()
        opened = open_probed(target.name, target.section, settings, ladder, redactor)
        try:
            async with opened as upstream:
                return await _probe(
                    target, upstream, paths, yes=yes, overflow=overflow, hidden=json
                )
        except ByokError as error:
            raise error.rewrite(redactor) from None

    profile, results = asyncio.run(run())
    if json:
        say_json(profile.report)
        return
    say_results(results)
    say_facts(profile.facts)


async def _probe(
    target: ProbeTarget,
    upstream: "HttpUpstream",
    paths: Paths,
    *,
    yes: bool,
    overflow: bool,
    hidden: bool,
) -> "tuple[Profile, list[ProbeResult]]":
    from byok.upstream.model_facts import Profiles
    from byok.upstream.probe.asking import Prober
    from byok.upstream.probe.cases import CASES, overflow_case, run_probe
    from byok.upstream.probe.report import keep_results
    from byok.wiring.upstreams import choose_model

    with show_progress(f"asking {target.name}", hidden=hidden):
        with contextlib.suppress(UpstreamError):  # some upstreams list no models
            await upstream.models()
        model = target.model or await choose_model(upstream, target.section)
        prober = Prober(upstream, model)
        cases: tuple[ProbeCase, ...] = CASES
        if overflow:
            await prober.window()
            if window := prober.facts.facts.window:
                cases = (*CASES, overflow_case(window))
    _ask_permission(target.name, prober, cases, yes=yes)
    with show_progress("asking the model", hidden=hidden) as progress:
        ended = itertools.count(1)

        def report_result(result: "ProbeResult") -> None:
            tell(f"  {result.case}: {result.outcome.value}")
            progress.update(done=next(ended), total=len(cases))

        results = await run_probe(prober, cases, report_result)
    profiles, key = Profiles(paths.profiles), upstream.spec.key
    tell_damage(profiles)
    profile = keep_results(profiles, key, prober.facts, results, dialect=prober.dialect)
    return profile, results


def _ask_permission(
    name: str, prober: "Prober", cases: "Sequence[ProbeCase]", *, yes: bool
) -> None:
    from byok.upstream.probe.cases import estimate_cost

    cost = estimate_cost(cases, prober.facts.facts.price)
    if cost.dollars is None:
        price = "its price is unknown"
    elif not cost.dollars:
        price = "they are free"
    else:
        source = prober.facts.sources["price"]
        price = f"${cost.dollars:.3f} by the prices of the {source}"
    tell(
        f"{name}/{prober.model} in {prober.dialect}: at most "
        f"{count_noun(cost.requests, 'request')}, about {cost.input_tokens:,} "
        f"tokens in and {cost.output_tokens:,} out; {price}."
    )
    target = quote(f"{name}/{prober.model}")
    confirm("Start?", f"byok probe {target}", yes=yes)


def say_results(results: "list[ProbeResult]") -> None:
    """Print the outcomes as a table."""
    rows = [
        (
            result.case,
            result.outcome.value,
            result.detail,
            str(result.requests or ""),
            str(result.input_tokens or ""),
            str(result.output_tokens or ""),
            f"{result.seconds:.1f}" if result.requests else "",
        )
        for result in results
    ]
    say_table(*_COLUMNS, rows=rows)


def say_facts(facts: ModelFacts) -> None:
    """Print the facts that byok uses from now on."""
    texts = [f"{name} = {value}" for name, value in write_facts(facts).items()]
    say(f"In the profile: {', '.join(texts) or 'nothing that byok uses'}")


def tell_damage(profiles: "Profiles") -> None:
    """Report why the file of profiles is ignored, if it is."""
    if damage := profiles.damage:
        tell(f"byok: {damage}")


def show_profiles(
    target: ProbeTarget,
    settings: "Settings",
    paths: Paths,
    *,
    export: Path | None,
    json: bool,
) -> None:
    """Show the profiles of an upstream or a model, or write them to a file.

    Raises:
        ConfigError: there is none.
    """
    from byok.upstream.model_facts import Profiles
    from byok.upstream.probe.report import export_profile, read_results
    from byok.wiring.upstreams import make_spec

    profiles = Profiles(paths.profiles)
    key = make_spec(target.name, target.section, settings).key
    models = [target.model] if target.model else profiles.models_of(key)
    selected = {model: profiles.find(key, model) for model in models}
    selected = {model: profile for model, profile in selected.items() if profile.report}
    tell_damage(profiles)
    if not selected:
        raise ConfigError(
            f"{target.name} has no profile of this model."
            if target.model
            else f"{target.name} has no profile.",
            hint=f"Make one: byok probe {target.name}/MODEL",
        )
    vendor = target.section.type
    rows = [export_profile(vendor, model, p) for model, p in selected.items()]
    if export:
        export.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
        tell(f"Wrote {count_noun(len(rows), 'profile')} to {export}.")
    elif json:
        say_json(rows)
    else:
        for model, profile in selected.items():
            report = profile.report
            dialect, date = report.get("dialect"), report.get("date")
            say(f"{target.name}/{model}, dialect {dialect}, {date}")
            say_results(read_results(report))
            say_facts(profile.facts)
