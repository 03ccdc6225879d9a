"""What a probe found: the outcome of each case, as JSON for the profile.

Nothing of an upstream's own words is kept: they may name accounts and keys.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import replace

from byok import __version__
from byok.core.chat import Json
from byok.dialects.model_facts import FactSource, ModelFacts, SourcedFacts, write_facts
from byok.upstream.model_facts import Profile, Profiles

_MOST_CASES, _LONGEST = 100, 200
_NAMED = ("date", "byok", "dialect")
_Count: TypeAlias = Annotated[int, Meta(ge=0, lt=10**12)]


class ProbeOutcome(StrEnum):
    """How a case of the probe ended."""

    YES = "yes"
    NO = "no"
    REFUSED = "refused"
    FAILED = "failed"
    SKIPPED = "not tried"


class ProbeResult(Struct, frozen=True):
    """The outcome of one case, and what it cost.

    `facts` are values of facts that it shows.
    """

    case: str
    outcome: ProbeOutcome
    detail: str = ""
    requests: _Count = 0
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    seconds: Annotated[float, Meta(ge=0, lt=1e9)] = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)


def write_report(
    results: list[ProbeResult], *, dialect: str, date: str, version: str
) -> Json:
    """Return the report that a profile keeps; `date` is that of the day in ISO 8601."""
    cases = [*map(_write, results)]
    return {"date": date, "byok": version, "dialect": dialect, "cases": cases}


def _write(result: ProbeResult) -> Json:
    case = to_builtins(result)
    return {n: v for n, v in case.items() if n != "facts"} | {
        "seconds": round(result.seconds, 2)
    }


def keep_results(
    profiles: Profiles,
    key: str,
    known: SourcedFacts,
    results: list[ProbeResult],
    *,
    dialect: str,
) -> Profile:
    """Store what a probe found of a model today, and return it.

    `key` names the upstream, `known` is what is known of the model besides.

    Raises:
        OSError: the file cannot be written.
    """
    model, today = known.facts.id, datetime.now(UTC).date().isoformat()
    report = write_report(results, dialect=dialect, date=today, version=__version__)
    profile = Profile(facts_of(model, results, known), report)
    profiles.write(key, model, profile)
    return profile


def read_results(report: Json) -> list[ProbeResult]:
    """Return the outcomes of a report; what is not valid is left out."""
    cases = report.get("cases")
    found = cases[:_MOST_CASES] if isinstance(cases, list) else []
    return [result for case in found for result in _read(case)]


def _read(case: Any) -> Iterator[ProbeResult]:
    try:
        read = convert(case, ProbeResult)
    except ValidationError:
        return
    name, detail = read.case[:_LONGEST], read.detail[:_LONGEST]
    yield replace(read, case=name, detail=detail, facts={})


def export_profile(vendor: str, model: str, profile: Profile) -> Json:
    """Return a profile for others: without names, addresses, keys and headers.

    `vendor` is a preset's name, or openai_compatible.
    """
    report = profile.report
    known = {name: v for name in _NAMED if isinstance(v := report.get(name), str)}
    cases = [*map(_write, read_results(report))]
    return {
        "vendor": vendor,
        "model": model,
        **known,
        "facts": write_facts(profile.facts),
        "cases": cases,
    }


def facts_of(
    model: str, results: list[ProbeResult], known: SourcedFacts | None = None
) -> ModelFacts:
    """Return what all cases together show, and the dialect that refusals led to."""
    shown: dict[str, Any] = {}
    if known and known.sources.get("dialect") is FactSource.REFUSAL:
        shown["dialect"] = known.facts.dialect
    for result in results:
        shown |= result.facts
    return ModelFacts(model, **shown)
