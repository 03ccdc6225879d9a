"""The sections against surprises: loops of agents, and caps on what is spent."""

from typing import Annotated, TypeAlias

from pydantic import Field, model_validator

from byok.config.section import SettingsSection
from byok.loops.limits import POLLING, LoopLimits

_Times: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]
_Count: TypeAlias = Annotated[int, Field(ge=0, le=10**15)]
_Dollars: TypeAlias = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]


class LoopSettings(SettingsSection):
    """When an agent that goes round in circles is told so, and when it is ended."""

    on: bool = Field(True, description="Look for loops in the turns of agents.")
    failing_warn: _Times = Field(
        3, description="Failures of an equal call until the model is told; 0: never."
    )
    failing_end: _Times = Field(
        6, description="Failures of an equal call that end a turn; 0: none does."
    )
    repeated_warn: _Times = Field(
        5, description="Equal results of an equal call until it is told; 0: never."
    )
    repeated_end: _Times = Field(
        10, description="Equal results of an equal call that end a turn; 0: none does."
    )
    steps_warn: _Times = Field(
        150, description="Steps of a turn until the model is told; 0: never."
    )
    steps_end: _Times = Field(
        400, description="Steps of a turn that end it; 0: any number is allowed."
    )
    polling: list[str] = Field(
        sorted(POLLING),
        description="Tools whose result may stay the same for as long as they wait.",
    )

    @model_validator(mode="after")
    def _warn_first(self) -> "LoopSettings":
        for kind in ("failing", "repeated", "steps"):
            warn, end = getattr(self, f"{kind}_warn"), getattr(self, f"{kind}_end")
            if end and warn >= end:
                raise ValueError(f"{kind}_end must be more than {kind}_warn, or 0")
        return self

    @property
    def limits(self) -> LoopLimits:
        """The limits of a turn."""
        values = self.model_dump()
        return LoopLimits(**{**values, "polling": frozenset(self.polling)})


class CapSettings(SettingsSection):
    """What may be spent in a day of this machine's clock, and in a conversation."""

    requests_per_day: _Count = Field(0, description="Requests to models; 0: any.")
    tokens_per_day: _Count = Field(
        0, description="Tokens of prompts and answers, cached ones too; 0: any."
    )
    usd_per_day: _Dollars = Field(
        0, description="US dollars, where prices are known; 0: any."
    )
    requests_per_conversation: _Count = Field(
        0, description="Requests of one conversation; 0: any."
    )
    tokens_per_conversation: _Count = Field(
        0, description="Tokens of one conversation; 0: any."
    )
    usd_per_conversation: _Dollars = Field(
        0, description="US dollars of one conversation; 0: any."
    )
