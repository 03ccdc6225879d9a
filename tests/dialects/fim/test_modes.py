"""FIM modes, as users write them."""

from byok.dialects.fim.templates import FimMode


def test_fim_mode_names_are_those_of_the_setting() -> None:
    assert [*FimMode] == ["infill", "suffix", "fim", "template", "chat"]
