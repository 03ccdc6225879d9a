"""What a probe found: the outcome of each case, as JSON for the profile.

Nothing of an upstream's own words is kept: they may name accounts and keys.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field, to_builtins

from byok import __version__
from byok.core.chat import Json
from byok.dialects.model_facts import FactSource, ModelFacts, SourcedFacts, write_facts
from byok.upstream.model_facts import Profile, Profiles

_MOST_CASES, _LONGEST = 100, 200
_NAMED = ("date", "byok", "dialect")


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
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
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
    if not isinstance(case, dict) or not isinstance(name := case.get("case"), str):
        return
    outcome = next((one for one in ProbeOutcome if one == case.get("outcome")), None)
    if outcome is None:
        return
    detail = case.get("detail")
    yield ProbeResult(
        name[:_LONGEST],
        outcome,
        detail[:_LONGEST] if isinstance(detail, str) else "",
        _count(case.get("requests")),
        _count(case.get("input_tokens")),
        _count(case.get("output_tokens")),
        _seconds(case.get("seconds")),
    )


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 10**12 else 0


def _seconds(value: Any) -> float:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e9 else 0.0


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
