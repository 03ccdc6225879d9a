"""The section [hours]."""

from pydantic import Field

from byok.settings.section import SettingsSection


class HourSettings(SettingsSection):
    """What is a busy hour."""

    busy: int = Field(0, ge=0, description="Requests of a busy hour; 0: no meter.")
