"""The settings that the page can change, its changes, and the settings of the file.

Settings that run a program, hold a secret or weaken a check are changed in the file
only: key commands, headers, fields of request bodies, queries, proxies, files of
certificates, plain http, names of secret files.
"""

import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from byok.clients import toml_text
from byok.clients.settings_text import (
    MISSING,
    MissingValue,
    SettingPath,
    SettingValue,
    TextEditor,
    decode_text,
    encode_text,
    find_value,
)
from byok.core.chat import Json
from byok.core.errors import BadRequest, ConfigError
from byok.core.routing import OFFICIAL
from byok.features import ROWS, FeatureRow
from byok.server.control import needs_restart
from byok.settings import Settings, UpstreamSettings, values
from byok.settings.loading import decode_settings
from byok.settings.section import FieldEntry, SettingFault, faults_of
from byok.settings.sections import FallbackSettings, ModelSettings

Tables: TypeAlias = Mapping[str, Any]  # of values, by name
UPSTREAMS = "upstreams"
HEAD = "# Made by byok's dashboard. Every setting: byok config example\n"
_TOML = TextEditor(toml_text)
_MAX_CHANGES = 200  # changes at a time
_MAX_LINE_CHARS = 2000  # characters of a line
_MAX_TEXT_CHARS = 20_000
_MAX_LIST_ITEMS = 200


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
    """A setting that can be changed; of an upstream's, `path` has only its own name."""

    path: SettingPath
    kind: FieldKind
    field: FieldInfo
    choices: tuple[str, ...] = ()

    @property
    def default(self) -> Any:
        """The value that holds if nothing is set."""
        return plain_value(self.field.get_default(call_default_factory=True))

    @property
    def limits(self) -> dict[str, Any]:
        """The bounds of a number: `least` and `most`, or `above` for an open one."""
        names = {"ge": "least", "le": "most", "gt": "above"}
        if limits := _entry_of(self.field).limits:
            return dict(zip(("least", "most"), limits, strict=True))
        return {
            name_on_page: bound
            for rule in _rules_of(self.field)
            for name, name_on_page in names.items()
            if (bound := getattr(rule, name, None)) is not None
        }


def _setting_names(row: FeatureRow) -> tuple[str, ...]:
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
        "chat.long_context_share",
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
    **{row.name: _setting_names(row) for row in _FEATURES if row.page_group == ""},
    "daemon": (
        "server.port",
        "log.level",
        *(
            key
            for row in _FEATURES
            if row.page_group == "daemon"
            for key in _setting_names(row)
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
    "long_cache",
)


@cache
def editable_settings() -> dict[str, tuple[Editable, ...]]:
    """Return the settings of each group."""
    return {
        group: tuple(_find_field(Settings, tuple(name.split("."))) for name in names)
        for group, names in GROUPS.items()
    }


@cache
def upstream_settings() -> tuple[Editable, ...]:
    """Return the settings of an upstream."""
    return tuple(_find_field(UpstreamSettings, (name,)) for name in UPSTREAM_KEYS)


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


def _find_field(section: type[BaseModel], path: SettingPath) -> Editable:
    for name in path[:-1]:
        below = section.model_fields[name].annotation
        if not (isinstance(below, type) and issubclass(below, BaseModel)):
            raise TypeError(f"{name} is no section")
        section = below
    field = section.model_fields[path[-1]]
    choices = _choices_of(field)
    return Editable(
        path, FieldKind.CHOICE if choices else _kind_of(field), field, choices
    )


def _choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the values to choose from, () if any value may be entered."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return tuple(choice.value for choice in kind)
    find = _entry_of(field).choices
    return find() if find else ()


def _kind_of(field: FieldInfo) -> FieldKind:
    kinds = get_args(field.annotation) or (field.annotation,)
    if bool in kinds:
        return FieldKind.SWITCH
    if float in kinds or int in kinds:
        return FieldKind.NUMBER if float in kinds else FieldKind.INTEGER
    usual = FieldKind.TEXT if field.annotation is str else FieldKind.LIST
    return FieldKind(_entry_of(field).kind or usual)


def _entry_of(field: FieldInfo) -> FieldEntry:
    return next(
        (entry for entry in field.metadata if isinstance(entry, FieldEntry)),
        FieldEntry(),
    )


def _rules_of(field: FieldInfo) -> list[Any]:
    """Return the rules of a field, and those of its type."""
    rules: list[Any] = []
    for rule in field.metadata:
        rules += getattr(rule, "metadata", None) or [rule]
    return rules


class Change(NamedTuple):
    """One change: a new value, or MISSING to remove the setting from the file."""

    path: SettingPath
    value: SettingValue | MissingValue


class Outcome(NamedTuple):
    """The new content `after`, or None and the faults of the changes."""

    after: bytes | None
    faults: tuple[SettingFault, ...] = ()


def read_changes(body: Json) -> tuple[list[Change], list[SettingFault]]:
    """Read the changes of a request; a value that its setting cannot have is a fault.

    Raises:
        BadRequest: a change is malformed, or the page may not change this setting.
    """
    rows = body.get("changes")
    if not isinstance(rows, list) or len(rows) > _MAX_CHANGES:
        raise _malformed("changes must be a list of at most 200")
    changes, faults = list[Change](), list[SettingFault]()
    for row in rows:
        path = _read_path(row)
        try:
            changes.append(Change(path, _read_value(path, row)))
        except ValueError as error:
            faults.append(SettingFault(path, str(error)))
    return changes, faults


def _read_path(row: Any) -> SettingPath:
    parts = row.get("path") if isinstance(row, dict) else None
    if (
        not isinstance(parts, list)
        or not 2 <= len(parts) <= 4
        or not all(isinstance(part, str) and len(part) <= 64 for part in parts)
    ):
        raise _malformed("a path is a list of names")
    path = tuple(parts)
    if find_editable(path) is None and not (path[0] == UPSTREAMS and len(path) == 2):
        raise _malformed(
            f"{'.'.join(path)} is not changed on this page, only in the file"
        )
    return path


def _read_value(path: SettingPath, row: dict[str, Any]) -> SettingValue | MissingValue:
    """Return the value of a change.

    Raises:
        ValueError: the setting cannot have this value.
    """
    if row.get("remove") is True:
        return MISSING
    if path[0] == UPSTREAMS:
        _check_name(path[1])
    if (editable := find_editable(path)) is None:
        if row.get("value") != {}:
            raise _malformed("an upstream is added as an empty table")
        return {}
    return _convert(editable, row.get("value"))


def _check_name(name: str) -> None:
    if not values.UPSTREAM_NAME.match(name):
        raise ValueError("must be a-z, 0-9, _ and -, 32 characters at most")
    if name == OFFICIAL:
        raise ValueError("this name is reserved for the official service")


def _convert(editable: Editable, value: Any) -> SettingValue:
    match editable.kind:
        case FieldKind.SWITCH:
            if not isinstance(value, bool):
                raise ValueError("must be on or off")
            return value
        case FieldKind.INTEGER | FieldKind.NUMBER:
            return _check_number(value, whole=editable.kind is FieldKind.INTEGER)
        case FieldKind.LIST | FieldKind.MODELS:
            if not isinstance(value, list) or len(value) > _MAX_LIST_ITEMS:
                raise ValueError(f"must be a list of at most {_MAX_LIST_ITEMS}")
            return [_check_text(part) for part in value]
        case FieldKind.LONG:
            return _check_text(value, max_chars=_MAX_TEXT_CHARS, lines=True)
        case _:
            return _check_text(value)


def _check_number(value: Any, *, whole: bool) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    if not math.isfinite(value) or abs(value) >= 2**53:
        raise ValueError("must be a smaller number")
    if value == int(value):
        return int(value)
    if whole:
        raise ValueError("must be a whole number")
    return value


def _check_text(
    value: Any, *, max_chars: int = _MAX_LINE_CHARS, lines: bool = False
) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    text: str = value.replace("\r\n", "\n")
    if len(text) > max_chars:
        raise ValueError(f"must have at most {max_chars:,} characters")
    allowed = "\n\t" if lines else ""
    if any(unicodedata.category(c) == "Cc" and c not in allowed for c in text):
        raise ValueError("must not contain control characters")
    return text


def apply_changes(
    before: bytes | None,
    changes: Sequence[Change],
    file: Path,
    validate: Callable[[Tables], object],
) -> Outcome:
    """Apply changes to the file's content, and validate it; nothing is written."""
    try:
        decode_settings(before or b"", file)
        decoded = decode_text(before or b"")
    except ConfigError as error:
        return Outcome(None, (SettingFault((), error.sentence),))
    text = decoded.text if before else HEAD
    for change in changes:
        try:
            text = _edit_text(text, change)
        except ValueError as error:
            reason = f"The settings file cannot be changed here: {error}."
            return Outcome(None, (SettingFault(change.path, reason),))
    after = encode_text(decoded._replace(text=text))
    try:
        validate(decode_settings(after, file))
    except ConfigError as error:
        faults = faults_of(error) or (SettingFault((), error.sentence),)
        return Outcome(None, tuple(_place_fault(fault, changes) for fault in faults))
    return Outcome(after)


def _edit_text(text: str, change: Change) -> str:
    if isinstance(change.value, MissingValue):
        return _TOML.drop(text, change.path)
    if change.value == {} and _TOML.read(text, change.path) not in (MISSING, {}):
        raise ValueError(f"{'.'.join(change.path)} is there already")
    return _TOML.put(text, change.path, change.value)


def _place_fault(fault: SettingFault, changes: Sequence[Change]) -> SettingFault:
    """Return a fault with the path of its change, else of a field on the page."""
    places = (*fault.causes, fault.path)
    for place in places:
        exact = [c.path for c in changes if place[: len(c.path)] == c.path]
        if place and exact:
            return SettingFault(max(exact, key=len), fault.message)
    shown_places = (place for place in places if find_editable(place) is not None)
    return SettingFault(next(shown_places, ()), fault.message)


def _malformed(reason: str) -> BadRequest:
    return BadRequest(f"Bad field: {reason}.", code="bad_field", status=422)


# ---- The settings that are changed in the file only


NAME = "NAME"  # stands in a path for a name that the user chooses
_MODEL = "vendor/model"  # an example of a model's name, which is written in quotes
_TABLE = "chat-stream"  # an example of a name in a table that is a setting itself
# Examples for settings whose default is empty, by the end of the setting's name.
_EXAMPLES: dict[str, Any] = {
    "proxy": "http://proxy.example.com:3128",
    "ca_file": "/etc/ssl/certs/company-ca.pem",
    "headers": {"X-Team": "7"},
    "extra_body": {"reasoning_effort": "low"},
    "query": {"api-version": "2024-10-21"},
    "api_key_env": "OPENAI_KEY",
    "key_names": ["work", "env:OPENAI_KEY_B"],
    "api_key_cmd": ["pass", "show", "openai"],
    "family": "qwen",
    "window": 131_072,
    "max_output": 8192,
    "most_tools": 128,
    "efforts": ["low", "medium", "high"],
    "replay": "tool_turns",
    "facts.NAME.dialect": "openai_chat",
    "price_input": 3.0,
    "price_output": 15.0,
    "price_cache_read": 0.3,
    "price_cache_write": 3.75,
    "aliases": {"fast": "byok:groq:llama-3.3-70b-versatile"},
    "prompts": "Answer briefly.",
    "workspaces": ["/home/me/project"],
    "extensions": ["py", "md"],
    "allow_secret": ["/config/example.env"],
    "search.remote.url": "https://code.example.com",
    "embeddings.upstream": "ollama",
    "embeddings.model": "nomic-embed-text",
    "dimensions": 512,
    "document_prefix": "search_document: ",
    "query_prefix": "search_query: ",
    "embeddings.price": 0.02,
    "embeddings.team.url": "https://qdrant.example.com:6333",
    "embeddings.team.team": "backend",
    "otel.endpoint": "https://otel.example.com",
}


class FileSetting(NamedTuple):
    """A setting that the page does not change."""

    path: SettingPath
    field: FieldInfo

    @property
    def name(self) -> str:
        """The names of its path, joined by dots."""
        return ".".join(self.path)

    @property
    def example(self) -> Any:
        """A value that shows the format: the default, unless that is empty."""
        ends = (".".join(self.path[at:]) for at in range(len(self.path)))
        if name_end := next((end for end in ends if end in _EXAMPLES), ""):
            return _EXAMPLES[name_end]
        default = plain_value(self.field.get_default(call_default_factory=True))
        return not default if default in (None, False) else default

    def lines(self, upstream: str = NAME) -> list[str]:
        """Return example lines: its section, and the setting, for this upstream."""
        whole_path = (*self.path, _TABLE) if len(self.path) == 1 else self.path
        path = _fill_in_names(whole_path, upstream)
        return TextEditor(toml_text).put("", path, self.example).splitlines()


def _fill_in_names(path: SettingPath, upstream: str) -> SettingPath:
    names = iter((upstream, _MODEL))
    return tuple(next(names) if name == NAME else name for name in path)


@cache
def file_settings() -> tuple[FileSetting, ...]:
    """Return the settings that are changed in the file only."""
    return tuple(row for row in _fields_of(Settings) if find_editable(row.path) is None)


def _fields_of(section: type[BaseModel]) -> Iterator[FileSetting]:
    for name, field in section.model_fields.items():
        kinds = get_args(field.annotation) or (field.annotation,)
        placeholder = (NAME,) if get_origin(field.annotation) is dict else ()
        below = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
        if not below:
            yield FileSetting((name,), field)
        for kind in below:
            yield from (
                FileSetting((name, *placeholder, *row.path), row.field)
                for row in _fields_of(kind)
            )


def describe_file_settings(file_tables: Mapping[str, Any], upstream: str) -> list[Json]:
    """Return the description of each, and the paths at which the file sets it.

    `file_tables` is the content of the file; the example lines are for `upstream`.
    """
    rows = list[Json]()
    for row in file_settings():
        section, *lines = row.lines(upstream)
        above = _fill_in_names(row.path[:-1] or row.path, upstream)
        rows.append(
            {
                "name": row.name,
                "description": row.field.description or "",
                "section": section,
                "has_section": find_value(file_tables, above) is not MISSING,
                "lines": lines,
                "restart": needs_restart(row.path),
                "given": [".".join(path) for path in _paths_in(file_tables, row.path)],
            }
        )
    return rows


def _paths_in(file_tables: Any, path: SettingPath) -> Iterator[SettingPath]:
    """Yield the paths of the file that match a path in which NAME is any name."""
    if not path:
        yield ()
        return
    is_any = path[0] == NAME and isinstance(file_tables, dict)
    for name in [*file_tables] if is_any else path[:1]:
        below = find_value(file_tables, (name,))
        if below is not MISSING:
            yield from ((name, *remaining) for remaining in _paths_in(below, path[1:]))
