"""Profiles that a probe wrote: whose they are, shown as tables, written for others."""

from pathlib import Path
from typing import TYPE_CHECKING

from byok.cli.output import count_noun, say, say_json, say_table, tell
from byok.errors import ConfigError

if TYPE_CHECKING:
    from byok.chat import Json
    from byok.config import Settings, UpstreamSettings
    from byok.dialects.model_facts import ModelFacts
    from byok.platform.paths import Paths
    from byok.upstream.probe.report import ProbeResult
    from byok.upstream.profiles import Profile, Profiles

_COLUMNS = ("tried", "result", "", "requests", "tokens in", "out", "seconds")


class ProbeTarget:
    """The upstream and the model that are meant; the model may be ""."""

    def __init__(self, what: str, settings: "Settings") -> None:
        from byok.config import upstream_named

        name, self.model = _split(what, settings)
        self.name: str
        self.section: UpstreamSettings
        self.name, self.section = upstream_named(name, settings)

    def key(self, settings: "Settings") -> str:
        """Return the name of the upstream in the file of profiles."""
        from byok.wiring.upstreams import make_spec

        return make_spec(self.name, self.section, settings).key


def _split(what: str, settings: "Settings") -> tuple[str, str]:
    from byok.model_ids import split_id

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


def say_facts(facts: "ModelFacts") -> None:
    """Print the facts that byok uses from now on."""
    from byok.dialects.model_facts import write_facts

    known = [f"{name} = {value}" for name, value in write_facts(facts).items()]
    say(f"In the profile: {', '.join(known) or 'nothing that byok uses'}")


def tell_damage(profiles: "Profiles") -> None:
    """Say why the file of profiles is ignored, if it is."""
    if damage := profiles.damage:
        tell(f"byok: {damage}")


def show_profiles(
    target: ProbeTarget,
    settings: "Settings",
    paths: "Paths",
    *,
    export: Path | None,
    json: bool,
) -> None:
    """Show the profiles of an upstream or a model, or write them to a file.

    Raises:
        ConfigError: there is none.
    """
    from byok.upstream.probe.report import export_profile
    from byok.upstream.profiles import Profiles

    profiles, key = Profiles(paths.profiles), target.key(settings)
    models = [target.model] if target.model else profiles.models_of(key)
    found = {model: profiles.find(key, model) for model in models}
    found = {model: profile for model, profile in found.items() if profile.report}
    tell_damage(profiles)
    if not found:
        raise ConfigError(
            f"{target.name} has no profile{' of this model' if target.model else ''}.",
            hint=f"Make one: byok probe {target.name}/MODEL",
        )
    vendor = target.section.type
    rows = [export_profile(vendor, model, one) for model, one in found.items()]
    if export:
        _write(export, rows)
    elif json:
        say_json(rows)
    else:
        for model, profile in found.items():
            _say_profile(target.name, model, profile)


def _say_profile(name: str, model: str, profile: "Profile") -> None:
    from byok.upstream.probe.report import read_results

    report = profile.report
    say(f"{name}/{model} in {report.get('dialect')}, {report.get('date')}")
    say_results(read_results(report))
    say_facts(profile.facts)


def _write(file: Path, rows: "list[Json]") -> None:
    import orjson

    file.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
    tell(f"Wrote {count_noun(len(rows), 'profile')} to {file}.")
