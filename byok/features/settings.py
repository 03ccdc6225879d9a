"""The sections of features in the settings; [otel] and [web] have their own files.

Every command needs the settings, so this file imports nothing of what runs.
"""

from typing import Annotated, TypeAlias

from pydantic import Field, model_validator

from byok.settings.section import SettingsClash, SettingsSection

_Count: TypeAlias = Annotated[int, Field(ge=0, le=10**15)]
_Dollars: TypeAlias = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
_Times: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]
# Tools whose answer may stay the same while something else goes on.
_POLLING = ("list-processes", "read-process", "read-terminal")


class CapSettings(SettingsSection):
    """What may be spent in a day of this machine's clock, and in a conversation."""

    requests_per_day: _Count = Field(
        0,
        description="Requests to models, background jobs and inline completions "
        "included; 0: no limit.",
    )
    tokens_per_day: _Count = Field(
        0, description="Tokens of prompts and answers, cached ones too; 0: no limit."
    )
    usd_per_day: _Dollars = Field(
        0,
        description="US dollars; only requests whose price is known count, and `byok "
        "status` says how many do not. 0: no limit.",
    )
    requests_per_conversation: _Count = Field(
        0, description="Requests of one conversation; 0: no limit."
    )
    tokens_per_conversation: _Count = Field(
        0, description="Tokens of one conversation; 0: no limit."
    )
    usd_per_conversation: _Dollars = Field(
        0, description="US dollars of one conversation; 0: no limit."
    )


class JournalSettings(SettingsSection):
    """The journal of requests: facts such as tokens and times, never any content."""

    keep_days: int = Field(
        90,
        ge=0,
        le=3650,
        description="Days for which requests are kept, up to 3650, within 200 MB; 0 "
        "switches the journal off.",
    )
    folder_names: bool = Field(
        True,
        description="Whether the name of the folder in which a client works is kept "
        "with its requests, never its path.",
    )


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


class MemorySettings(SettingsSection):
    """Whether conversations are remembered, and for how long."""

    on: bool = Field(
        False,
        description="Remember the editor's conversations on this machine, so that an "
        "agent can find what was said in them.",
    )
    days: int = Field(
        30, ge=1, le=3650, description="Days for which a conversation is remembered."
    )


class MetricsSettings(SettingsSection):
    """Numbers for Prometheus, with a token of their own (`byok token --metrics`)."""

    enabled: bool = Field(
        False,
        description="Collect numbers, and serve them as GET /metrics on byok's port.",
    )
