"""What is wrong with settings, by setting."""

from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from byok.errors import ConfigError

_MOST = 10


class SettingFault(NamedTuple):
    """One fault: `path` are the names on the way to the setting, () for all of them."""

    path: tuple[str, ...]
    message: str


def fault_rows(error: ValidationError) -> list[ErrorDetails]:
    """Return the first faults as pydantic tells them, without the values."""
    return error.errors(include_input=False)[:_MOST]


def fault_message(row: ErrorDetails) -> str:
    """Return the sentence of one fault."""
    return str(row["msg"].removeprefix("Value error, "))


def faults_of(error: ConfigError) -> tuple[SettingFault, ...]:
    """Return the faults of single settings that an error is about, () if of none."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return ()
    return tuple(
        SettingFault(tuple(map(str, row["loc"])), fault_message(row))
        for row in fault_rows(cause)
    )
