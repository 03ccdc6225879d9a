"""Faults by setting."""

from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.settings.faults import SettingFault, faults_of
from byok.settings.loading import decode_settings, make_settings

FILE = Path("config.toml")


def error_of(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        make_settings(decode_settings(text.encode(), FILE), FILE)
    return caught.value


def test_an_error_of_the_settings_knows_its_settings() -> None:
    error = error_of("[chat]\ntop_p = 2\n[server]\nport = 70000\n")
    first, second = sorted(faults_of(error))
    assert first.path == ("chat", "top_p")
    assert "less than or equal to 1" in first.message
    assert second == SettingFault(("server", "port"), second.message)
    assert not second.message.startswith("Value error")


def test_a_fault_of_all_settings_together_has_no_path() -> None:
    (fault,) = faults_of(error_of('[upstreams.Bad]\nbase_url = "http://127.0.0.1"\n'))
    assert fault.path == ()
    assert "'Bad'" in fault.message


def test_an_error_of_the_text_is_about_no_setting() -> None:
    assert faults_of(error_of("[chat\n")) == ()
    assert faults_of(ConfigError("It is gone.")) == ()


def test_no_value_is_in_a_fault_nor_in_the_traceback() -> None:
    error = error_of('[chat]\ntop_p = "sk-a-secret-of-somebody"\n')
    assert faults_of(error)
    assert "secret" not in f"{faults_of(error)} {error} {error.__cause__!r}"
