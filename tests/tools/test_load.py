"""The load runs' own check: what they count as a wrong answer, and as a missed goal."""

import json

from tools.bench.answers import Reading
from tools.bench.spec import Spec, record
from tools.load.faults import BROKEN, WHOLE, Draw, verdict


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


def test_load_verdict_of_a_fault_that_byok_hides() -> None:
    draw = Draw(Spec("000000aa", 5, fault="500"), WHOLE)
    assert verdict(draw, answer("".join(TEXTS))) == ""
    assert verdict(draw, answer("".join(TEXTS[:4])))
    assert verdict(draw, Reading(failure="ClientPayloadError"))
