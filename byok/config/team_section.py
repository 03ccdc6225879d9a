"""The section about vectors that a team shares."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from byok.config import values
from byok.config.section import SettingsSection
from byok.urls import is_loopback


def _team(name: str) -> str:
    if name and not values.UPSTREAM_NAME.match(name):
        raise ValueError("must be a-z, 0-9, _ and -, 32 characters at most")
    return name


class TeamSettings(SettingsSection):
    """Nothing is shared until a server is named here."""

    url: Annotated[str, AfterValidator(lambda u: values.base_url(u) if u else u)] = (
        Field("", description="The team's Qdrant server; empty: off.")
    )
    team: Annotated[str, AfterValidator(_team)] = Field(
        "", description="The team's name, the same for all members."
    )
    write: bool = Field(
        False, description="Give the team the vectors that are made here, too."
    )
    search: bool = Field(
        False,
        description="Ask the team's index while there are no vectors here; the vector "
        "of a question goes there.",
    )
    ca_file: str = Field("", description="As in [network], for this server.")
    proxy: Annotated[str, AfterValidator(values.proxy)] = Field(
        "", description="http:// proxy for this server; that of [network] is not used."
    )
    allow_insecure_http: bool = Field(
        False, description="Allow plain http to another machine; all can be read."
    )

    @model_validator(mode="after")
    def _check(self) -> "TeamSettings":
        if self.url and not self.team:
            raise ValueError("names a server and no team: set team")
        plain = self.url.lower().startswith("http:")
        if plain and not is_loopback(self.url) and not self.allow_insecure_http:
            raise ValueError(
                "url is plain http to another machine, so others could read its key "
                "and all vectors: use https, or set allow_insecure_http = true"
            )
        return self

    @property
    def on(self) -> bool:
        """Whether a server is named."""
        return bool(self.url)
