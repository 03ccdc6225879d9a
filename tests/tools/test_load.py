"""The load runs' own check: what they count as a wrong answer, and as a missed goal."""

import json

import pytest

from tools.bench.answers import Reading
from tools.bench.records import record
from tools.bench.spec import Spec
from tools.load.faults import BROKEN, REFUSED, WHOLE, Draw, verdict
from tools.load.outcome import Outcome, percentile, slope_per_hour


def answer(text: str, code: str = "") -> Reading:
    """Write an answer of byok that has only text, and an error if there is a code."""
    error = f', "error": {{"code": "{code}"}}' if code else ""
    pieces = f'{{"text": {json.dumps(text)}, "nodes": [], "stop_reason": null}}\n'
    end = f'{{"text": "", "nodes": [], "stop_reason": 1{error}}}\n'
    return Reading(status=200, reads=[(0.0, (pieces + end).encode())])


CUT = Draw(Spec("000000aa", 5, fault="cut", at=2), BROKEN)
TEXTS = [record("000000aa", n, 1) for n in range(5)]


def test_load_verdict_of_a_cut_stream() -> None:
    two = "".join(TEXTS[:2])
    assert verdict(CUT, answer(two, "upstream_cut")) == ""
    assert "error ''" in verdict(CUT, answer(two))
    assert "error 'internal'" in verdict(CUT, answer(two, "internal"))
    assert "1 records" in verdict(CUT, answer(TEXTS[0], "upstream_cut"))
    assert verdict(CUT, answer(two[:-1], "upstream_cut"))
    assert verdict(CUT, answer(TEXTS[1] + TEXTS[0], "upstream_cut"))


def test_load_verdict_of_a_refused_stream() -> None:
    draw = Draw(Spec("000000aa", 5, fault="500", times=9), REFUSED)
    assert verdict(draw, answer("", "upstream_refused")) == ""
    assert verdict(draw, answer(TEXTS[0], "upstream_refused"))


def test_load_verdict_of_a_fault_that_byok_hides() -> None:
    draw = Draw(Spec("000000aa", 5, fault="500"), WHOLE)
    assert verdict(draw, answer("".join(TEXTS))) == ""
    assert verdict(draw, answer("".join(TEXTS[:4])))
    assert verdict(draw, Reading(failure="ClientPayloadError"))


def test_load_outcome_names_a_missed_goal() -> None:
    outcome = Outcome("L0")
    outcome.goal("way", 3, 4, " m")
    assert outcome.line() == "L0: ok: way 3 m (goal 4)"
    outcome.goal("height", 5, 4)
    outcome.goal("depth", float("nan"), 4)
    assert outcome.missed == ["height"]
    assert outcome.line().startswith("L0: MISSED height: way 3 m")


def test_load_slope_and_percentile() -> None:
    assert slope_per_hour([(0, 1.0), (1800, 2.0), (3600, 3.0)]) == pytest.approx(2)
    assert str(slope_per_hour([(0, 1.0)])) == "nan"
    assert percentile([*range(100)], 0.99) == 99
