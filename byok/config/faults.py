"""What is wrong with settings, by setting."""

from typing import NamedTuple, Unpack

from byok.errors import ConfigError, Details


class SettingFault(NamedTuple):
    """One fault: `path` are the names on the way to the setting, () for all of them."""

    path: tuple[str, ...]
    message: str


class InvalidSettings(ConfigError):
    """The settings are not valid; `faults` are those that belong to settings."""

    def __init__(
        self,
        message: str,
        faults: tuple[SettingFault, ...] = (),
        **details: Unpack[Details],
    ) -> None:
        super().__init__(message, **details)
        self.faults = faults
