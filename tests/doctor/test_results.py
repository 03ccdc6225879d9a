"""What a check found, in its four states."""

import pytest

from byok.doctor.results import CheckResult, CheckState, doubtful, good, skip, wrong


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (good("x"), CheckState.OK),
        (doubtful("x", "y"), CheckState.WARNING),
        (wrong("x", "y"), CheckState.FAILURE),
        (skip("x"), CheckState.NOT_CHECKED),
    ],
    ids=str,
)
def test_a_result_has_its_state_and_text(
    result: CheckResult, state: CheckState
) -> None:
    assert (result.state, result.found) == (state, "x")


def test_what_is_not_ok_has_a_cure() -> None:
    assert doubtful("x", "y").cure == wrong("x", "y").cure == "y"
    assert good("x").cure == ""
