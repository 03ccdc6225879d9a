"""What all sections of the settings share, and what may be wrong with them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from byok.core.errors import ConfigError
from byok.core.suggest import did_you_mean


class FieldEntry(Struct, frozen=True):
    """How a setting is entered on the page, where its type does not tell.

    `kind` is one of the page's kinds of fields, `limits` are the least and the most of
    a number. `choices` returns the values of which one is chosen; others are refused.
    """

    kind: str = ""
    choices: Callable[[], tuple[str, ...]] | None = None
    limits: tuple[int, int] | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Let pydantic check the choice, too."""
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


class SettingsClash(ValueError):
    """Settings that do not fit together, or to what there is.

    `paths` are those settings, from the section on whose rule is broken; the first is
    the one that the message is about.
    """

    def __init__(self, message: str, *paths: tuple[str, ...]) -> None:
        super().__init__(message)
        self.paths = paths


class SettingsSection(BaseModel):
    """A section: it knows all its keys, never changes, and shows no value in errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


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
    named = error.paths if isinstance(error, SettingsClash) else ()
    return SettingFault(section, message, tuple((*section, *path) for path in named))
