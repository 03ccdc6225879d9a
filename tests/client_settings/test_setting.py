"""Paths of settings."""

from byok.client_settings.setting import write_path


def test_setting_path_is_readable() -> None:
    assert write_path(("provider", "byok", "name")) == "provider > byok > name"
