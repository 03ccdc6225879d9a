"""What all sections of the settings share."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """How a setting is entered on the page, where its type does not tell.

    `kind` is one of the page's kinds of fields, `choices` returns the values of which
    one is chosen, `limits` are the least and the most of a number.
    """

    kind: str = ""
    choices: Callable[[], tuple[str, ...]] | None = None
    limits: tuple[int, int] | None = None


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
