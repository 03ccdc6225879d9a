"""The settings that are changed in the file only, each with lines to write there."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from byok.clients import toml_text
from byok.clients.settings_text import MISSING, SettingPath, TextEditor, find_value
from byok.core.chat import Json
from byok.server.control import needs_restart
from byok.server.dashboard.editable import find_editable, plain_value
from byok.settings import Settings

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
