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
        "",
        description='An upstream of these settings or a preset, such as "ollama". '
        "Empty means off.",
    )
    model: Annotated[str, AfterValidator(_model)] = Field(
        "",
        description="The embedding model, as that upstream lists it, such as "
        '"nomic-embed-text".',
    )
    dimensions: int = Field(
        0,
        ge=0,
        le=8192,
        description="Dimensions of a vector, for models that can shorten theirs; 0 "
        "means the model's default.",
    )
    document_prefix: _Prefix = Field(
        None,
        description="Text before each chunk of code, instead of what byok knows that "
        "the model expects.",
    )
    query_prefix: _Prefix = Field(
        None,
        description="Text before each question, instead of what byok knows that the "
        "model expects.",
    )
    price: Annotated[float | None, Field(ge=0, le=100_000)] = Field(
        None,
        description="Dollars per million tokens, for estimates. byok knows the prices "
        "of some vendors.",
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
