"""A refused level of thinking becomes a switch, or nothing."""

import pytest

from byok.dialects.error_bodies import refusal_of
from byok.dialects.ollama.dialect import THINK_ROW
from byok.dialects.remedies import RefusedRequest, Remedy


@pytest.mark.parametrize(
    ("think", "changed"), [("high", True), (True, None), (False, None)]
)
def test_a_refused_level_of_thinking_becomes_a_switch_or_nothing(
    think: object, changed: object
) -> None:
    sent = {"model": "m", "think": think}
    error = refusal_of({"error": 'think value "high" is not supported'}, 400)
    found = THINK_ROW.find(RefusedRequest(sent, error))
    assert found is not None and THINK_ROW.make
    assert THINK_ROW.make(sent, Remedy("think", *found)).get("think") is changed


def test_a_switch_for_thinking_stays_where_a_level_was_refused() -> None:
    plain = {"model": "m", "think": False}
    assert THINK_ROW.make
    assert THINK_ROW.make(plain, Remedy("think", "think", "switch")) == plain
    other = refusal_of({"error": "model not found"}, 404)
    assert THINK_ROW.find(RefusedRequest(plain, other)) is None
