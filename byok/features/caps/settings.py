"""The section [caps]."""

from typing import Annotated, TypeAlias

from pydantic import Field

from byok.settings.section import SettingsSection

_Count: TypeAlias = Annotated[int, Field(ge=0, le=10**15)]
_Dollars: TypeAlias = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]


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
