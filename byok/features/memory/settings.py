"""The section [memory]."""

from pydantic import Field

from byok.settings.section import SettingsSection


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
