"""All settings: their sources, and constraints between sections."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, create_model, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from byok.core.routing import OFFICIAL
from byok.core.urls import is_plain_http
from byok.dialects.presets import DEMO, PRESETS, preset_of
from byok.features import ROWS
from byok.settings import values
from byok.settings.section import SettingsClash, SettingsSection
from byok.settings.sections import (
    ChatSettings,
    CompletionSettings,
    ContextSettings,
    EmbeddingSettings,
    LimitSettings,
    LogSettings,
    NetworkSettings,
    RetrievalSettings,
    RoutingSettings,
    SearchSettings,
    ServerSettings,
    ToolSettings,
    UpstreamSettings,
)

S = TypeVar("S", bound=SettingsSection)


class _OwnSections(BaseSettings):
    """The sections that do not belong to features."""

    model_config = SettingsConfigDict(
        env_prefix="BYOK_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    server: ServerSettings = Field(default_factory=lambda: ServerSettings())
    network: NetworkSettings = Field(default_factory=lambda: NetworkSettings())
    upstreams: dict[str, UpstreamSettings] = Field({})
    routing: RoutingSettings = Field(default_factory=lambda: RoutingSettings())
    chat: ChatSettings = Field(default_factory=lambda: ChatSettings())
    completion: CompletionSettings = Field(default_factory=lambda: CompletionSettings())
    prompts: dict[str, str] = Field(
        {}, description="Text added to the system message, by endpoint."
    )
    tools: ToolSettings = Field(default_factory=lambda: ToolSettings())
    context: ContextSettings = Field(default_factory=lambda: ContextSettings())
    retrieval: RetrievalSettings = Field(default_factory=lambda: RetrievalSettings())
    search: SearchSettings = Field(default_factory=lambda: SearchSettings())
    embeddings: EmbeddingSettings = Field(default_factory=lambda: EmbeddingSettings())
    limits: LimitSettings = Field(default_factory=lambda: LimitSettings())


if TYPE_CHECKING:
    _Sections = _OwnSections
else:
    _kinds = {row.name: row.load_settings() for row in ROWS if row.settings}
    _Sections = create_model(
        "_Sections",
        __base__=_OwnSections,
        **{name: (kind, Field(default_factory=kind)) for name, kind in _kinds.items()},
    )


class Settings(_Sections):
    """All settings of a user, by section; a feature's is found by its type."""

    log: LogSettings = Field(default_factory=lambda: LogSettings())

    def section(self, kind: type[S]) -> S:
        """Return the section of this type.

        Raises:
            TypeError: there is none.
        """
        for name in type(self).model_fields:
            if isinstance(section := getattr(self, name), kind):
                return section
        raise TypeError(f"{kind.__name__} is no section of the settings")

    @model_validator(mode="before")
    @classmethod
    def _set_types(cls, data: Any) -> Any:
        """Set the type of an upstream section that is named like a preset."""
        upstreams = data.get("upstreams") if isinstance(data, dict) else None
        if isinstance(upstreams, dict):
            for name, section in upstreams.items():
                if name in (*PRESETS, DEMO) and isinstance(section, dict):
                    section.setdefault("type", name)
        return data

    @model_validator(mode="after")
    def _check_names(self) -> "Settings":
        for name, upstream in self.upstreams.items():
            if not values.UPSTREAM_NAME.match(name):
                raise SettingsClash(
                    f"the upstream name {name[:40]!r} must be a-z, 0-9, _ and -, "
                    "32 characters at most",
                    ("upstreams", name),
                )
            if name == OFFICIAL:
                raise SettingsClash(
                    f"the name {OFFICIAL} is reserved for the official service; set "
                    "its address under [routing.official]",
                    ("upstreams", name),
                )
            _check_upstream(name, upstream)
        services = self._services_with_keys()
        several = len(self.upstreams) > 1 or services
        if several or any(u.key_names for u in self.upstreams.values()):
            _check_key_variables(self.upstreams, services)
        if self.embeddings.upstream == DEMO:
            raise SettingsClash(
                "embeddings.upstream: the demo has no embedding model",
                ("embeddings", "upstream"),
            )
        if self.prompts:
            _check_prompts(self.prompts)
        return self

    def _services_with_keys(self) -> dict[tuple[str, str], str]:
        """Return the other services with keys: (name, label) and a description."""
        from byok.settings.keys import ladder

        services: dict[tuple[str, str], str] = {}
        if self.embeddings.team.on:
            for label in ("", ladder.TEAM_SALT):
                services[ladder.TEAM_INDEX, label] = "the team's index"
        if self.search.remote.on:
            services[ladder.SEARCH_SERVER, ""] = "the search server"
        web = getattr(self, "web", None)  # a feature's section
        if web is not None and web.on:
            services[ladder.WEB_SEARCH, ""] = "the search of the web"
        return services

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by precedence; the file is the init argument `_toml`."""
        arguments = dict(getattr(init_settings, "init_kwargs", {}))
        file = arguments.pop("_toml", {})
        return (
            InitSettingsSource(settings_cls, arguments),
            env_settings,
            InitSettingsSource(settings_cls, file),
        )


def _check_key_variables(
    upstreams: Mapping[str, UpstreamSettings], services: Mapping[tuple[str, str], str]
) -> None:
    """Check that no two keys would be read from the same environment variable."""
    from byok.settings.keys.ladder import own_variable

    owners = {own_variable(*key): (title, "") for key, title in services.items()}
    for name, upstream in upstreams.items():
        labels = [key for key in upstream.key_names if not key.startswith("env:")]
        for label in labels if upstream.key_names else [""]:
            owner = f"{name}/{label}" if label else name
            variable = own_variable(name, label)
            other, other_name = owners.setdefault(variable, (owner, name))
            if other != owner:
                raise SettingsClash(
                    f"the keys of {other} and {owner} would both be read from "
                    f"{variable}: rename one of them",
                    ("upstreams", name),
                    ("upstreams", other_name),
                )


def _check_prompts(prompts: dict[str, str]) -> None:
    from byok.protocols.augment.endpoints import (  # slow: the whole protocol
        ENDPOINTS,
        Generate,
    )

    endpoints = [row.path.lstrip("/") for row in ENDPOINTS if isinstance(row, Generate)]
    for endpoint in prompts:
        if endpoint not in endpoints:
            raise ValueError(f"the keys of [prompts] are: {', '.join(endpoints)}")


def _check_upstream(name: str, upstream: UpstreamSettings) -> None:
    preset, address = preset_of(upstream.type), ("upstreams", name, "base_url")
    default = preset.addresses.get(upstream.dialect or preset.dialect)
    if upstream.type != DEMO and not (upstream.base_url or default):
        raise SettingsClash(f"upstreams.{name}.base_url is missing", address)
    if upstream.key_names and (upstream.api_key_env or upstream.api_key_cmd):
        raise SettingsClash(
            f"upstreams.{name} has key_names and one more source of a key: keep one",
            (*address[:2], "key_names"),
        )
    if is_plain_http(upstream.base_url) and not upstream.allow_insecure_http:
        raise SettingsClash(
            f"upstreams.{name}.base_url is plain http to another machine, so others "
            "could read its key: use https, or set allow_insecure_http = true",
            address,
        )
