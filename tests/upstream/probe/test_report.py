"""Reports of the probe: written, read back from anything, exported without secrets."""

from typing import Any

import orjson
import pytest
from hypothesis import given

from byok.dialects.model_facts import FactSource, ModelFacts, SourcedFacts
from byok.upstream.model_facts import Profile
from byok.upstream.probe.report import (
    ProbeOutcome,
    ProbeResult,
    export_profile,
    facts_of,
    read_results,
    write_report,
)
from tests.fakes.values import VALUES

SEEN = ProbeResult("picture", ProbeOutcome.YES, "seen", 1, 90, 2, 0.5, {"images": True})
NO = ProbeResult("cache", ProbeOutcome.NO)
SAID = {"dialect": "gemini", "date": "2026-11-22", "version": "0.3"}


def test_a_report_is_read_back_without_its_facts() -> None:
    report = write_report([SEEN, NO], **SAID)
    assert orjson.loads(orjson.dumps(report)) == report
    first, second = read_results(report)
    assert (first.case, first.outcome, first.detail) == ("picture", "yes", "seen")
    assert (first.requests, first.input_tokens, first.output_tokens) == (1, 90, 2)
    assert (first.seconds, first.facts) == (0.5, {})
    assert second == NO


@given(VALUES, VALUES)
def test_a_report_may_be_any_json(value: Any, case: Any) -> None:
    reports = [{"cases": value}, {"cases": [case, {"case": "a", "outcome": value}]}]
    for report in reports:
        for result in read_results(report):
            assert isinstance(result.detail, str)
            assert result.requests >= 0


@pytest.mark.parametrize(
    ("source", "dialect"),
    [(FactSource.REFUSAL, "openai_responses"), (FactSource.FAMILY, "")],
)
def test_the_dialect_that_a_refusal_led_to_is_a_fact(
    source: FactSource, dialect: str
) -> None:
    known = SourcedFacts(
        ModelFacts("m", dialect="openai_responses"), {"dialect": source}
    )
    assert facts_of("m", [NO], known) == ModelFacts("m", dialect=dialect)


def test_an_exported_profile_has_no_names_and_addresses() -> None:
    report = {**write_report([SEEN], **SAID), "address": "https://me:sk-1@host"}
    profile = Profile(ModelFacts("m", images=True), report)
    exported = export_profile("openai", "m", profile)
    assert exported == {
        "vendor": "openai",
        "model": "m",
        "date": "2026-11-22",
        "byok": "0.3",
        "dialect": "gemini",
        "facts": {"images": True},
        "cases": [
            {
                "case": "picture",
                "outcome": ProbeOutcome.YES,
                "detail": "seen",
                "requests": 1,
                "input_tokens": 90,
                "output_tokens": 2,
                "seconds": 0.5,
            }
        ],
    }
