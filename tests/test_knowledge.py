"""How code is searched."""

from byok.knowledge import SearchMode


def test_modes_are_the_words_of_the_settings() -> None:
    assert [mode.value for mode in SearchMode] == ["auto", "index", "ripgrep"]
