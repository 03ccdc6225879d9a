"""What the section [loops] refuses."""

import pytest
from pydantic import ValidationError

from byok.features.loops.settings import LoopSettings


def test_a_turn_of_a_hundred_steps_is_not_even_told() -> None:
    shipped = LoopSettings()
    assert shipped.steps_warn > 100
    assert shipped.steps_end > 2 * shipped.steps_warn


@pytest.mark.parametrize("kind", ["failing", "repeated", "steps"])
@pytest.mark.parametrize(
    ("warn", "end", "good"),
    [(3, 4, True), (3, 0, True), (0, 2, True), (3, 3, False), (4, 3, False)],
)
def test_a_model_is_told_before_a_turn_is_ended(
    kind: str, warn: int, end: int, good: bool
) -> None:
    values = {f"{kind}_warn": warn, f"{kind}_end": end}
    if good:
        LoopSettings.model_validate(values)
        return
    with pytest.raises(ValidationError, match=f"{kind}_end must be more than"):
        LoopSettings.model_validate(values)
