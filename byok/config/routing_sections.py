"""The sections about who answers: models, fallbacks, the official service."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, field_validator

from byok.config import values
from byok.config.section import MODEL, MODELS, SettingsSection
from byok.purposes import Purpose
from byok.routing import EndpointGroup, ServedBy

_Model: TypeAlias = Annotated[str, MODEL]
_Models: TypeAlias = Annotated[list[str], AfterValidator(values.model_ids), MODELS]


class ModelSettings(SettingsSection):
    """The model for each purpose: byok:<upstream>:<model>, an alias or a listed one."""

    chat: _Model = Field("", description="Chats in which the client names no model.")
    completion: _Model = Field("", description="Inline completions while you type.")
    edit: _Model = Field(
        "", description="Edits of selections and files, smart paste, next edits."
    )
    commit: _Model = Field("", description="Commit messages.")
    title: _Model = Field("", description="Titles of conversations.")
    summary: _Model = Field(
        "",
        description="Background requests of clients (silent chats), such as "
        "summaries; also byok's own summaries of conversations that no longer fit, "
        "for which empty means the chat's model.",
    )
    enhance: _Model = Field(
        "", description="Prompt enhancement, by its own endpoint or by a silent chat."
    )
    small: _Model = Field(
        "",
        description="A small model for each of commit, title, summary and enhance "
        "that is empty. It is also asked for English search words if a question about "
        "code is in another language (docs/RETRIEVAL.md).",
    )
    rerank: _Model = Field(
        "",
        description='The model that reranks files if retrieval.rerank is "model"; '
        "empty means the chat's model. Very small models cannot do this "
        "(docs/RETRIEVAL.md).",
    )

    def for_purpose(self, purpose: Purpose) -> str:
        """Return the user's choice for a purpose, "" for none."""
        chosen: str = getattr(self, purpose.value)
        return chosen or (self.small if purpose.is_small else "")


class FallbackSettings(SettingsSection):
    """The models that answer if the chosen one cannot, for each purpose, in order.

    Nothing is sent to any upstream that is not named here or chosen by the user.
    """

    chat: _Models = Field([], description="Chats and agents.")
    completion: _Models = Field([], description="Inline completions.")
    edit: _Models = Field(
        [], description="Edits of selections and files, smart paste, next edits."
    )
    commit: _Models = Field([], description="Commit messages.")
    title: _Models = Field([], description="Titles of conversations.")
    summary: _Models = Field(
        [], description="Background requests, and byok's own summaries."
    )
    enhance: _Models = Field([], description="Prompt enhancement.")
    small: _Models = Field(
        [],
        description="Models for each of commit, title, summary and enhance that is "
        "empty.",
    )

    def for_purpose(self, purpose: Purpose) -> list[str]:
        """Return the models for a purpose, in the order in which they are asked."""
        named: list[str] = getattr(self, purpose.value)
        return named or (self.small if purpose.is_small else [])


class OfficialSettings(SettingsSection):
    """Who answers each group of endpoints: local, official, or off."""

    base_url: Annotated[str, AfterValidator(values.official_url)] = Field(
        "",
        description="Address of the official service, beginning with https://, as "
        "your account shows it. Empty: never used.",
    )
    models: ServedBy = Field(
        ServedBy.LOCAL,
        description='The model list and feature flags. "official" merges both lists; '
        "the service's own models are included only if chat is official too. This "
        "group cannot be off.",
    )
    context: ServedBy = Field(
        ServedBy.LOCAL,
        description='Code uploads and code retrieval. "official" sends your files '
        "there; chats, edits and completions there know your code only if this is "
        "set.",
    )
    completion: ServedBy = Field(ServedBy.LOCAL, description="Inline completions.")
    edit: ServedBy = Field(
        ServedBy.LOCAL,
        description="Edits of selections and files, smart paste, next edits, commit "
        "messages.",
    )
    chat: ServedBy = Field(
        ServedBy.LOCAL,
        description="Chats and agents, titles, prompt enhancement. Requests for a "
        "model byok:<upstream>:<model> always stay with byok. The service's own "
        "models are in the picker only if models is official too.",
    )
    agents: ServedBy = Field(
        ServedBy.LOCAL,
        description="Remote tools and remote agents, which byok itself does not "
        "provide.",
    )
    account: ServedBy = Field(
        ServedBy.LOCAL,
        description="Credit, subscription, notifications, source hosting, secrets "
        "stored there.",
    )
    telemetry: ServedBy = Field(
        ServedBy.OFF,
        description='Events, metrics and feedback. Only "official" sends them '
        "anywhere.",
    )

    @field_validator("models")
    @classmethod
    def _not_off(cls, wanted: ServedBy) -> ServedBy:
        if wanted is ServedBy.OFF:
            raise ValueError("must be local or official: clients do not start without")
        return wanted

    def where(self, group: EndpointGroup) -> ServedBy:
        """Return who answers a group; local if the service has no address."""
        wanted: ServedBy = getattr(self, group.value)
        unknown = wanted is ServedBy.OFFICIAL and not self.base_url
        return ServedBy.LOCAL if unknown else wanted

    @property
    def lacks_address(self) -> bool:
        """Whether a group is set to official although no address is set."""
        wanted = any(getattr(self, g.value) is ServedBy.OFFICIAL for g in EndpointGroup)
        return wanted and not self.base_url

    @property
    def groups(self) -> tuple[EndpointGroup, ...]:
        """The groups that the official service answers."""
        return tuple(g for g in EndpointGroup if self.where(g) is ServedBy.OFFICIAL)


class RoutingSettings(SettingsSection):
    """The default model, models by purpose, their names, and the official service."""

    default: _Model = Field(
        "",
        description='Default model, such as "byok:openai:gpt-4.1", or just the name '
        "of a model that some upstream has. Empty means the default model of the "
        "first upstream.",
    )
    models: ModelSettings = Field(
        default_factory=lambda: ModelSettings(), description="A model per purpose."
    )
    fallback: FallbackSettings = Field(
        default_factory=lambda: FallbackSettings(),
        description="Models that answer if the chosen one cannot, per purpose.",
    )
    aliases: Annotated[dict[str, str], AfterValidator(values.aliases)] = Field(
        {},
        description="Names of your own for models, such as { fast = "
        '"byok:groq:llama-3.3-70b-versatile" }. They can be used wherever a model is '
        "named, in the settings and by clients.",
    )
    official: OfficialSettings = Field(
        default_factory=lambda: OfficialSettings(),
        description="Who answers each group of endpoints.",
    )
