"""The report of a probe: the outcome of each case, as JSON for the profile.

It contains no text of an upstream, which may name accounts and keys.
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

_MAX_CASES, _MAX_TEXT_CHARS = 100, 200
_EXPORTED_FIELDS = ("date", "byok", "dialect")
_Count: TypeAlias = Annotated[int, Meta(ge=0, lt=10**12)]


class ProbeOutcome(StrEnum):
    """How a case of the probe ended."""

    YES = "yes"
    NO = "no"
    REFUSED = "refused"
    FAILED = "failed"
    SKIPPED = "not tried"


class ProbeResult(Struct, frozen=True):
    """The outcome of one case, its cost, and the `facts` that it shows."""

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
    """Return the report for a profile; `date` is in ISO 8601."""
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
    """Store the profile of a model after a probe, and return it.

    `key` identifies the upstream, `known` are other known facts about the model.

    Raises:
        OSError: the file cannot be written.
    """
    model, today = known.facts.id, datetime.now(UTC).date().isoformat()
    report = write_report(results, dialect=dialect, date=today, version=__version__)
    profile = Profile(facts_of(model, results, known), report)
    profiles.write(key, model, profile)
    return profile


def read_results(report: Json) -> list[ProbeResult]:
    """Return the outcomes of a report; invalid ones are left out."""
    cases = report.get("cases")
    considered = cases[:_MAX_CASES] if isinstance(cases, list) else []
    return [result for case in considered for result in _read(case)]


def _read(case: Any) -> Iterator[ProbeResult]:
    try:
        result = convert(case, ProbeResult)
    except ValidationError:
        return
    name, detail = result.case[:_MAX_TEXT_CHARS], result.detail[:_MAX_TEXT_CHARS]
    yield replace(result, case=name, detail=detail, facts={})


def export_profile(vendor: str, model: str, profile: Profile) -> Json:
    """Return a profile for others: without names, addresses, keys and headers.

    `vendor` is a preset's name, or openai_compatible.
    """
    report = profile.report
    pairs = ((name, report.get(name)) for name in _EXPORTED_FIELDS)
    fields = {name: value for name, value in pairs if isinstance(value, str)}
    cases = [*map(_write, read_results(report))]
    return {
        "vendor": vendor,
        "model": model,
        **fields,
        "facts": write_facts(profile.facts),
        "cases": cases,
    }


def facts_of(
    model: str, results: list[ProbeResult], known: SourcedFacts | None = None
) -> ModelFacts:
    """Return the facts that all cases show, and the dialect that refusals led to."""
    facts: dict[str, Any] = {}
    if known and known.sources.get("dialect") is FactSource.REFUSAL:
        facts["dialect"] = known.facts.dialect
    for result in results:
        facts |= result.facts
    return ModelFacts(model, **facts)
