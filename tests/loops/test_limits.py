"""The shipped limits leave room for long work."""

from byok.loops.limits import LoopLimits


def test_a_turn_of_a_hundred_steps_is_not_even_told() -> None:
    limits = LoopLimits()
    assert limits.steps_warn > 100
    assert limits.steps_end > 2 * limits.steps_warn
