"""The base class of settings sections, entries of fields, and faults of settings."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from byok.core.errors import ConfigError
from byok.core.suggest import did_you_mean


class FieldEntry(Struct, frozen=True):
    """How a setting is entered on the page, if its type does not tell.

    `kind` is one of the page's kinds of fields; `limits` are the minimum and maximum of
    a number. `choices` returns the valid values; others are refused.
    """

    kind: str = ""
    choices: Callable[[], tuple[str, ...]] | None = None
    limits: tuple[int, int] | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Make pydantic check the choices, too."""
        schema = handler(source)
        if self.choices is None:
            return schema
        return core_schema.no_info_after_validator_function(self._check, schema)

    def _check(self, value: str) -> str:
        names = [*(self.choices or tuple)()]
        if value in names:
            return value
        guess = did_you_mean(value, names)
        message = f"must be one of: {', '.join(filter(None, names))}"
        raise ValueError(f"{message}. {guess}" if guess else message)


LONG, MODEL, MODELS = FieldEntry("long"), FieldEntry("model"), FieldEntry("models")
_MAX_FAULTS = 10


class SettingsClash(ValueError):
    """Settings that contradict each other, or name something that does not exist.

    `paths` are these settings, relative to the section whose rule is broken; the
    message is about the first.
    """

    def __init__(self, message: str, *paths: tuple[str, ...]) -> None:
        super().__init__(message)
        self.paths = paths


class SettingsSection(BaseModel):
    """A section: it refuses unknown keys, is immutable, and hides values in errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SettingFault(NamedTuple):
    """One fault; `path` is that of the setting, () for the settings as a whole.

    `causes` are the paths of the settings that contradict each other, if known.
    """

    path: tuple[str, ...]
    message: str
    causes: tuple[tuple[str, ...], ...] = ()


def fault_rows(error: ValidationError) -> list[ErrorDetails]:
    """Return the first faults in pydantic's form, without the values."""
    return error.errors(include_input=False)[:_MAX_FAULTS]


def fault_message(row: ErrorDetails) -> str:
    """Return the message of one fault."""
    return str(row["msg"].removeprefix("Value error, "))


def faults_of(error: ConfigError) -> tuple[SettingFault, ...]:
    """Return the faults of settings that caused an error; () if there are none."""
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
    paths = error.paths if isinstance(error, SettingsClash) else ()
    return SettingFault(section, message, tuple((*section, *path) for path in paths))
