"""The section about vectors of code: which model makes them."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from byok.config.section import SettingsSection
from byok.config.team_section import TeamSettings
from byok.config.values import UPSTREAM_NAME

_LONGEST_PREFIX = 1000


def _upstream(name: str) -> str:
    if name and not UPSTREAM_NAME.match(name):
        raise ValueError("must be the name of an upstream or preset")
    return name


def _model(name: str) -> str:
    if name and (len(name) > 200 or not name.isprintable()):
        raise ValueError("must be a model's name, 200 characters at most")
    return name


_Prefix = Annotated[str | None, Field(max_length=_LONGEST_PREFIX)]


class EmbeddingSettings(SettingsSection):
    """Embeddings are off until an upstream is named here."""

    upstream: Annotated[str, AfterValidator(_upstream)] = Field(
        "", description="An upstream of the settings, or a preset; empty: off."
    )
    model: Annotated[str, AfterValidator(_model)] = Field(
        "", description="The embedding model, as that upstream lists it."
    )
    dimensions: int = Field(
        0, ge=0, le=8192, description="Numbers in a vector; 0: the model's own."
    )
    document_prefix: _Prefix = Field(
        None, description="Text before each piece of code; by default the model's own."
    )
    query_prefix: _Prefix = Field(
        None, description="Text before each question; by default the model's own."
    )
    price: Annotated[float | None, Field(ge=0, le=100_000)] = Field(
        None, description="Dollars per million tokens, for estimates."
    )

    team: TeamSettings = Field(default_factory=lambda: TeamSettings())

    @model_validator(mode="after")
    def _check_model(self) -> "EmbeddingSettings":
        if self.upstream and not self.model:
            raise ValueError("names an upstream and no model: set model")
        return self

    @property
    def on(self) -> bool:
        """Whether a model is named; nothing is sent before it is confirmed as well."""
        return bool(self.upstream)
