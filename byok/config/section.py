"""The base class of all sections of the settings."""

from pydantic import BaseModel, ConfigDict


class SettingsSection(BaseModel):
    """A section: it knows all its keys, never changes, and shows no value in errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
