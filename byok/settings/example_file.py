"""The example settings file: every key with its default and its description.

Its template, `example.toml`, has the sections, defaults and worked examples. What a
setting does is said by the description of its field.
"""

import re
import textwrap
from collections.abc import Iterator
from importlib import resources
from typing import Any

from pydantic import BaseModel

_HEAD = re.compile(r"#\[(.+)\]")
_SETTING = re.compile(r"#([a-z]\w*) = ")
_PRESETS = "{presets}"
_COLUMNS = 92


def read_template() -> str:
    """Return the file without the descriptions of settings."""
    return (resources.files(__package__) / "example.toml").read_text("utf-8")


def example() -> str:
    """Return the whole file."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    from byok.dialects.presets import (  # completion needs only the template
        DEMO,
        PRESETS,
    )

    section, presets = "", ", ".join((*PRESETS, DEMO))
    for line in read_template().splitlines():
        if head := _HEAD.fullmatch(line):
            section = head[1]
        if setting := _SETTING.match(line):
            yield from _wrap(_describe(section, setting[1]))
        if _PRESETS in line:
            yield from _wrap(line.removeprefix("# ").replace(_PRESETS, presets))
        else:
            yield line


def _wrap(comment: str) -> list[str]:
    return textwrap.wrap(
        comment,
        _COLUMNS,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _describe(section: str, name: str) -> str:
    """Return the description of a setting, "" for a key that is no field."""
    from byok.settings.settings import Settings

    kind: Any = Settings
    for part in section.split("."):
        field = kind.model_fields.get(part)
        if field is None:
            continue  # the name of an upstream or model
        kind = field.annotation
        if not isinstance(kind, type):
            kind = kind.__args__[-1]  # of a dict
    field = kind.model_fields.get(name) if issubclass(kind, BaseModel) else None
    return (field.description or "") if field else ""
