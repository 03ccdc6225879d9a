"""Which variable sets a setting."""

import pytest

from byok.settings.loading import environment_values, variable_of


@pytest.mark.parametrize(
    ("environ", "due"),
    [
        ({"BYOK_CHAT__TOP_P": "1"}, "BYOK_CHAT__TOP_P"),
        ({"byok_chat__top_p": "1"}, "byok_chat__top_p"),
        ({"BYOK_CHAT": "{}"}, "BYOK_CHAT"),
        ({"BYOK_CHAT": "{}", "BYOK_CHAT__TOP_P": "1"}, "BYOK_CHAT__TOP_P"),
        ({"BYOK_CHAT__TEMPERATURE": "1"}, ""),
        ({}, ""),
    ],
)
def test_the_variable_of_a_setting(environ: dict[str, str], due: str) -> None:
    assert variable_of(("chat", "top_p"), environ) == due


def test_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYOK_UPSTREAMS__GROQ__MODEL", "m")
    monkeypatch.setenv("BYOK_TOOLS", '{"ask_again": 2}')
    assert environment_values() == {
        "upstreams": {"groq": {"model": "m"}},
        "tools": {"ask_again": 2},
    }
