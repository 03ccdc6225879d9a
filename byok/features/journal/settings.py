"""The section [journal]."""

from pydantic import Field

from byok.settings.section import SettingsSection


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
