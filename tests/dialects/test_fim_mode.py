"""The ways to fill a gap, as users write them."""

from byok.dialects.fim_mode import FimMode


def test_the_names_are_those_of_the_setting() -> None:
    assert [*FimMode] == ["infill", "suffix", "fim", "template", "chat"]
