"""byok probe: try out what a model takes and does, and keep what was found."""

import asyncio
import contextlib
import itertools
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from byok import __version__
from byok.cli.command_context import ConfigOption, JsonOption, load
from byok.cli.completion import complete_target
from byok.cli.terminal import (
    YesOption,
    count_noun,
    say,
    say_json,
    say_table,
    show_progress,
    tell,
)
from byok.core.errors import ByokError, ConfigError, UpstreamError
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


class ProbeTarget:
    """The upstream and the model that are meant; the model may be ""."""

    def __init__(self, what: str, settings: "Settings") -> None:
        from byok.settings import (
            upstream_named,
            upstream_names,
        )  # not to complete a word

        name, self.model = _split(what, settings)
        self.name: str
        self.section: UpstreamSettings
        try:
            self.name, self.section = upstream_named(name, settings)
        except ConfigError as error:
            known = upstream_names(settings.upstreams)
            is_address = "://" in name or name.rpartition(":")[2].isdecimal()
            if name in known or is_address:
                raise
            guess = did_you_mean(name, known)
            raise error.with_hint(
                guess
                or f"A model is named with its upstream: byok probe UPSTREAM/{name}"
            ) from None

    def key(self, settings: "Settings") -> str:
        """Return the name of the upstream in the file of profiles."""
        from byok.wiring.upstreams import make_spec

        return make_spec(self.name, self.section, settings).key


def probe(
    what: Annotated[
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
    target = ProbeTarget(what, settings)
    if show or export:
        show_profiles(target, settings, paths, export=export, json=json)
        return
    run = _Run(target, settings, paths, yes=yes, overflow=overflow, hidden=json)
    results, facts = asyncio.run(run.probe())
    if json:
        from byok.upstream.probe.report import write_report

        say_json(dict(write_report(results, **run.facts_of_report())))
        return
    say_results(results)
    say_facts(facts)


@dataclass
class _Run:
    target: ProbeTarget
    settings: "Settings"
    paths: Paths
    yes: bool
    overflow: bool
    hidden: bool
    dialect: str = ""

    def facts_of_report(self) -> dict[str, str]:
        today = datetime.now(UTC).date().isoformat()
        return {"dialect": self.dialect, "date": today, "version": __version__}

    async def probe(self) -> "tuple[list[ProbeResult], ModelFacts]":
        from byok.wiring.key_sources import make_ladder
        from byok.wiring.upstreams import open_probed

        redactor = Redactor()
        target, ladder = self.target, make_ladder(self.paths)
        try:
            async with open_probed(
                target.name, target.section, self.settings, ladder, redactor
            ) as upstream:
                return await self._probe(upstream)
        except ByokError as error:
            raise error.rewrite(redactor) from None

    async def _probe(
        self, upstream: "HttpUpstream"
    ) -> "tuple[list[ProbeResult], ModelFacts]":
        from byok.upstream.model_facts import Profiles
        from byok.upstream.probe.asking import Prober
        from byok.upstream.probe.cases import run_probe
        from byok.upstream.probe.report import keep_results, write_report
        from byok.wiring.upstreams import choose_model

        with show_progress(f"asking {self.target.name}", hidden=self.hidden):
            with contextlib.suppress(UpstreamError):  # not all have a list
                await upstream.models()
            section = self.target.section
            model = self.target.model or await choose_model(upstream, section)
            prober = Prober(upstream, model)
            self.dialect = prober.dialect
            cases = await self._cases(prober)
        self._ask_permission(prober, cases)
        with show_progress("asking the model", hidden=self.hidden) as progress:
            ended = itertools.count(1)

            def tell_result(result: "ProbeResult") -> None:
                tell(f"  {result.case}: {result.outcome.value}")
                progress.update(done=next(ended), total=len(cases))

            results = await run_probe(prober, cases, tell_result)
        report = write_report(results, **self.facts_of_report())
        profiles = Profiles(self.paths.profiles)
        tell_damage(profiles)
        key = upstream.spec.key
        return results, keep_results(profiles, key, prober.facts, results, report)

    async def _cases(self, prober: "Prober") -> "tuple[ProbeCase, ...]":
        from byok.upstream.probe.cases import CASES, overflow_case

        if not self.overflow:
            return CASES
        await prober.window()
        window = prober.facts.facts.window
        return (*CASES, overflow_case(window)) if window else CASES

    def _ask_permission(self, prober: "Prober", cases: "tuple[ProbeCase, ...]") -> None:
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
            f"{self.target.name}/{prober.model} in {prober.dialect}: at most "
            f"{count_noun(cost.requests, 'request')}, about {cost.input_tokens:,} "
            f"tokens in and {cost.output_tokens:,} out; {price}."
        )
        if self.yes:
            return
        if not sys.stdin.isatty():
            raise ConfigError(
                "A probe sends the model many requests.", hint="Add --yes to start it."
            )
        typer.confirm("Start?", abort=True, err=True)


def _split(what: str, settings: "Settings") -> tuple[str, str]:
    what = what or settings.routing.default
    what = settings.routing.aliases.get(what.removeprefix("byok:"), what)
    if parts := split_id(what):
        return parts
    if "://" in what:
        return what, ""
    name, _, model = what.partition("/")
    name = name or next(iter(settings.upstreams), "")
    if not name:
        raise ConfigError(
            "There is no upstream in the settings.",
            hint="Name one, such as: byok probe ollama",
        )
    return name, model


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
    known = [f"{name} = {value}" for name, value in write_facts(facts).items()]
    say(f"In the profile: {', '.join(known) or 'nothing that byok uses'}")


def tell_damage(profiles: "Profiles") -> None:
    """Say why the file of profiles is ignored, if it is."""
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
    from byok.upstream.probe.report import export_profile

    profiles, key = Profiles(paths.profiles), target.key(settings)
    models = [target.model] if target.model else profiles.models_of(key)
    found = {model: profiles.find(key, model) for model in models}
    found = {model: profile for model, profile in found.items() if profile.report}
    tell_damage(profiles)
    if not found:
        raise ConfigError(
            f"{target.name} has no profile of this model."
            if target.model
            else f"{target.name} has no profile.",
            hint=f"Make one: byok probe {target.name}/MODEL",
        )
    vendor = target.section.type
    rows = [export_profile(vendor, model, one) for model, one in found.items()]
    if export:
        export.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
        tell(f"Wrote {count_noun(len(rows), 'profile')} to {export}.")
    elif json:
        say_json(rows)
    else:
        for model, profile in found.items():
            _say_profile(target.name, model, profile)


def _say_profile(name: str, model: str, profile: "Profile") -> None:
    from byok.upstream.probe.report import read_results

    report = profile.report
    say(f"{name}/{model}, dialect {report.get('dialect')}, {report.get('date')}")
    say_results(read_results(report))
    say_facts(profile.facts)
