"""The names of the variables that hold keys."""

from byok.settings.keys.ladder import own_variable


def test_the_variable_names_the_upstream_and_the_key() -> None:
    assert own_variable("my-box") == "BYOK_KEY_MY_BOX"
    assert own_variable("openai", "work") == "BYOK_KEY_OPENAI__WORK"
