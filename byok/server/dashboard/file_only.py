"""The settings that are changed in the file only, each with lines to write there."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from byok.clients import toml_text
from byok.clients.editor import MISSING, SettingPath, TextEditor, find_value
from byok.core.chat import Json
from byok.server.control import needs_restart
from byok.server.dashboard.editable import find_editable, plain_value
from byok.settings import Settings

NAME = "NAME"  # stands for a name that the user chooses
_MODEL = "vendor/model"  # so for that of a model, which is written in quotes
_TABLE = "chat-stream"  # a name in a table that is a setting
# What is written where the default is nothing, by the end of the setting's name.
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
        """The names on the way to it."""
        return ".".join(self.path)

    @property
    def example(self) -> Any:
        """A value that says how it is written: the default, unless that is nothing."""
        ends = (".".join(self.path[at:]) for at in range(len(self.path)))
        if found := next((end for end in ends if end in _EXAMPLES), ""):
            return _EXAMPLES[found]
        default = plain_value(self.field.get_default(call_default_factory=True))
        return not default if default in (None, False) else default

    def lines(self, upstream: str = NAME) -> list[str]:
        """Return a line for its section and one for itself, of an upstream."""
        named = (*self.path, _TABLE) if len(self.path) == 1 else self.path
        path = _put_names(named, upstream)
        return TextEditor(toml_text).put("", path, self.example).splitlines()


def _put_names(path: SettingPath, upstream: str) -> SettingPath:
    names = iter((upstream, _MODEL))
    return tuple(next(names) if name == NAME else name for name in path)


@cache
def file_settings() -> tuple[FileSetting, ...]:
    """Return the settings that are changed in the file only."""
    return tuple(row for row in _all(Settings) if find_editable(row.path) is None)


def _all(section: type[BaseModel]) -> Iterator[FileSetting]:
    for name, field in section.model_fields.items():
        kinds = get_args(field.annotation) or (field.annotation,)
        chosen = (NAME,) if get_origin(field.annotation) is dict else ()
        below = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
        if not below:
            yield FileSetting((name,), field)
        for kind in below:
            yield from (
                FileSetting((name, *chosen, *row.path), row.field) for row in _all(kind)
            )


def describe_file_settings(given: Mapping[str, Any], upstream: str) -> list[Json]:
    """Return what the page says of each, and by which names the file has it.

    `given` is what the file says, `upstream` the name of one for the lines.
    """
    rows = list[Json]()
    for row in file_settings():
        section, *lines = row.lines(upstream)
        above = _put_names(row.path[:-1] or row.path, upstream)
        rows.append(
            {
                "name": row.name,
                "description": row.field.description or "",
                "section": section,
                "has_section": find_value(given, above) is not MISSING,
                "lines": lines,
                "restart": needs_restart(row.path),
                "given": [".".join(path) for path in _paths_in(given, row.path)],
            }
        )
    return rows


def _paths_in(given: Any, path: SettingPath) -> Iterator[SettingPath]:
    """Give the paths that the file has for one."""
    if not path:
        yield ()
        return
    is_any = path[0] == NAME and isinstance(given, dict)
    for name in [*given] if is_any else path[:1]:
        below = find_value(given, (name,))
        if below is not MISSING:
            yield from ((name, *rest) for rest in _paths_in(below, path[1:]))
