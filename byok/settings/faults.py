"""What is wrong with settings, by setting."""

from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from byok.core.errors import ConfigError
from byok.settings.section import SettingsClash

_MOST = 10


class SettingFault(NamedTuple):
    """One fault: `path` are the names on the way to the setting, () for all of them.

    `causes` are the settings that it may come from, if several do not fit together.
    """

    path: tuple[str, ...]
    message: str
    causes: tuple[tuple[str, ...], ...] = ()


def fault_rows(error: ValidationError) -> list[ErrorDetails]:
    """Return the first faults as pydantic tells them, without the values."""
    return error.errors(include_input=False)[:_MOST]


def fault_message(row: ErrorDetails) -> str:
    """Return the sentence of one fault."""
    return str(row["msg"].removeprefix("Value error, "))


def faults_of(error: ConfigError) -> tuple[SettingFault, ...]:
    """Return the faults of single settings that an error is about, () if of none."""
    cause = error.__cause__
    if isinstance(cause, SettingsClash):
        return (_fault_of((), cause, error.sentence),)
    if not isinstance(cause, ValidationError):
        return ()
    return tuple(
        _fault_of(
            tuple(map(str, row["loc"])),
            row.get("ctx", {}).get("error"),
            fault_message(row),
        )
        for row in fault_rows(cause)
    )


def _fault_of(
    section: tuple[str, ...], error: Exception | None, message: str
) -> SettingFault:
    """Return a fault of a section, with the settings that an error names."""
    named = error.paths if isinstance(error, SettingsClash) else ()
    return SettingFault(section, message, tuple((*section, *path) for path in named))
