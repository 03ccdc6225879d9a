"""The settings that can be changed on the page, as an explicit list.

What runs a program, carries a secret or weakens a check is for the file alone: key
commands, headers, fields of request bodies, queries, proxies, files of certificates,
plain http, names of secret files.
"""

from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from byok.client_settings.setting import SettingPath
from byok.config import Settings, UpstreamSettings
from byok.config.routing_sections import FallbackSettings, ModelSettings
from byok.config.section import FieldEntry
from byok.features import ROWS, FeatureRow

UPSTREAMS = "upstreams"


class FieldKind(StrEnum):
    """What kind of value a setting has, which decides how it is entered."""

    TEXT = "text"
    LONG = "long"
    NUMBER = "number"
    INTEGER = "integer"
    CHOICE = "choice"
    SWITCH = "switch"
    LIST = "list"
    MODEL = "model"
    MODELS = "models"


class Editable(NamedTuple):
    """A setting that can be changed; the path of an upstream's one is its key alone."""

    path: SettingPath
    kind: FieldKind
    field: FieldInfo
    choices: tuple[str, ...] = ()

    @property
    def default(self) -> Any:
        """The value that counts where nothing is set."""
        given = self.field.get_default(call_default_factory=True)
        return plain_value(given)

    @property
    def limits(self) -> dict[str, Any]:
        """The bounds of a number: least and most, or above which it must be."""
        names = {"ge": "least", "le": "most", "gt": "above"}
        if limits := _entry(self.field).limits:
            return dict(zip(("least", "most"), limits, strict=True))
        return {
            shown: bound
            for rule in _metadata(self.field)
            for name, shown in names.items()
            if (bound := getattr(rule, name, None)) is not None
        }


def _keys_of(row: FeatureRow) -> tuple[str, ...]:
    """Return the settings of a feature."""
    return tuple(f"{row.name}.{key}" for key in row.load_settings().model_fields)


_FEATURES = sorted((row for row in ROWS if row.settings), key=attrgetter("name"))
# Groups in the order of the page; the settings in each, the common ones first.
GROUPS: dict[str, tuple[str, ...]] = {
    "chat": (
        "chat.temperature",
        "chat.max_tokens",
        "chat.system_prompt",
        "chat.effort",
        "chat.top_p",
        "chat.retrieval",
        "chat.context_chars",
        "chat.compact_tools",
    ),
    "models": (
        "routing.default",
        *(f"routing.models.{name}" for name in ModelSettings.model_fields),
    ),
    "fallback": tuple(
        f"routing.fallback.{name}" for name in FallbackSettings.model_fields
    ),
    "official": (
        "routing.official.base_url",
        "routing.official.models",
        "routing.official.context",
        "routing.official.completion",
        "routing.official.edit",
        "routing.official.chat",
        "routing.official.agents",
        "routing.official.account",
        "routing.official.telemetry",
    ),
    "completion": (
        "completion.way",
        "completion.timeout_ms",
        "completion.max_tokens",
        "completion.chat_input",
        "completion.next_edit",
    ),
    "tools": ("tools.repair", "tools.ask_again"),
    "retrieval": ("retrieval.mode", "retrieval.rerank"),
    **{row.name: _keys_of(row) for row in _FEATURES if row.page_group == ""},
    "daemon": (
        "server.port",
        "log.level",
        *(
            key
            for row in _FEATURES
            if row.page_group == "daemon"
            for key in _keys_of(row)
        ),
    ),
}
UPSTREAM_KEYS = (
    "type",
    "base_url",
    "model",
    "temperature",
    "max_tokens",
    "system_prompt",
    "context_window",
    "timeout",
    "patience",
    "effort",
    "top_p",
    "models",
    "dialect",
    "num_ctx",
    "cache",
)


@cache
def editable_settings() -> dict[str, tuple[Editable, ...]]:
    """Return the settings of each group."""
    return {
        group: tuple(_find(Settings, tuple(name.split("."))) for name in names)
        for group, names in GROUPS.items()
    }


@cache
def upstream_settings() -> tuple[Editable, ...]:
    """Return the settings of an upstream."""
    return tuple(_find(UpstreamSettings, (name,)) for name in UPSTREAM_KEYS)


def find_editable(path: SettingPath) -> Editable | None:
    """Return the setting at a path of the file, None if the page may not change it."""
    if path[:1] == (UPSTREAMS,):
        rows = upstream_settings() if len(path) == 3 else ()
        return next((row for row in rows if row.path == path[2:]), None)
    every = (row for rows in editable_settings().values() for row in rows)
    return next((row for row in every if row.path == path), None)


def plain_value(value: Any) -> Any:
    """Return a value of the settings as JSON."""
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, list | tuple) else value


def _find(section: type[BaseModel], path: SettingPath) -> Editable:
    for name in path[:-1]:
        below = section.model_fields[name].annotation
        if not (isinstance(below, type) and issubclass(below, BaseModel)):
            raise TypeError(f"{name} is no section")
        section = below
    field = section.model_fields[path[-1]]
    choices = _choices(field)
    return Editable(path, FieldKind.CHOICE if choices else _kind(field), field, choices)


def _choices(field: FieldInfo) -> tuple[str, ...]:
    """Return the values of which one is chosen, () where any may be entered."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return tuple(choice.value for choice in kind)
    find = _entry(field).choices
    return find() if find else ()


def _kind(field: FieldInfo) -> FieldKind:
    kinds = get_args(field.annotation) or (field.annotation,)
    if bool in kinds:
        return FieldKind.SWITCH
    if float in kinds or int in kinds:
        return FieldKind.NUMBER if float in kinds else FieldKind.INTEGER
    usual = FieldKind.TEXT if field.annotation is str else FieldKind.LIST
    return FieldKind(_entry(field).kind or usual)


def _entry(field: FieldInfo) -> FieldEntry:
    return next(
        (one for one in field.metadata if isinstance(one, FieldEntry)), FieldEntry()
    )


def _metadata(field: FieldInfo) -> list[Any]:
    """Return the rules of a field, and those of its type."""
    found: list[Any] = []
    for rule in field.metadata:
        found += getattr(rule, "metadata", None) or [rule]
    return found
