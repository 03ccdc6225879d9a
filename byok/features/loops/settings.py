"""The section [loops]."""

from typing import Annotated, TypeAlias

from pydantic import Field, model_validator

from byok.settings.section import SettingsClash, SettingsSection

# Tools whose answer may stay the same while something else goes on.
_POLLING = ("list-processes", "read-process", "read-terminal")
_Times: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]


class LoopSettings(SettingsSection):
    """When an agent that goes round in circles is told so, and when it is ended."""

    on: bool = Field(True, description="Detect agents in a loop.")
    failing_warn: _Times = Field(
        3, description="Failures of the same call before the model is warned; 0: never."
    )
    failing_end: _Times = Field(
        6, description="Failures of the same call before the turn is ended; 0: never."
    )
    repeated_warn: _Times = Field(
        5,
        description="How often the same call may return the same result, with nothing "
        "new in between, before the model is warned; 0: never.",
    )
    repeated_end: _Times = Field(
        10, description="Repeated results of a call before the turn is ended; 0: never."
    )
    steps_warn: _Times = Field(
        150,
        description="Steps of the model since the user's last message before the model "
        "is warned; 0: never.",
    )
    steps_end: _Times = Field(
        400, description="Steps of a turn before it is ended; 0: never."
    )
    polling: list[str] = Field(
        [*_POLLING],
        description="Tools that wait for something, so that the same result may be "
        "repeated.",
    )

    @model_validator(mode="after")
    def _warn_first(self) -> "LoopSettings":
        for kind in ("failing", "repeated", "steps"):
            warn, end = getattr(self, f"{kind}_warn"), getattr(self, f"{kind}_end")
            if end and warn >= end:
                raise SettingsClash(
                    f"{kind}_end must be more than {kind}_warn, or 0",
                    (f"{kind}_end",),
                    (f"{kind}_warn",),
                )
        return self
