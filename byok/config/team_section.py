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
        Field(
            "",
            description="Address of the team's Qdrant server, such as "
            '"https://qdrant.example.com:6333". Empty means off.',
        )
    )
    team: Annotated[str, AfterValidator(_team)] = Field(
        "", description="The team's name, the same for all members: a-z, 0-9, _ and -."
    )
    write: bool = Field(
        False,
        description="Also upload the vectors that are created on this machine. "
        "Otherwise, byok only downloads.",
    )
    search: bool = Field(
        False,
        description="While this machine has no vectors of the files that a question "
        "is about (after a change of model, or while byok embed is paused), search in "
        "the team's index; the vector of the question is sent there.",
    )
    ca_file: str = Field(
        "",
        description="PEM file of additional CA certificates, instead of that of "
        "[network].",
    )
    proxy: Annotated[str, AfterValidator(values.proxy)] = Field(
        "", description="http:// proxy for this server; that of [network] is not used."
    )
    allow_insecure_http: bool = Field(
        False,
        description="Allow plain http to another machine. Others could then read the "
        "key and all vectors.",
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
