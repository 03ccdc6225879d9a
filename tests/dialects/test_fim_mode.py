"""The ways to fill a gap, as users write them."""

from byok.dialects.fim_mode import FillWay


def test_the_names_are_those_of_the_setting() -> None:
    assert [*FillWay] == ["infill", "suffix", "fim", "template", "chat"]
