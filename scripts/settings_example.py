"""Write the comments of config.example.toml: presets, and descriptions of settings."""

import re
import textwrap
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from byok.settings import Settings
from scripts.preset_lists import with_presets

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"
_HEAD = re.compile(r"#\[(.+)\]")
_SETTING = re.compile(r"#([a-z]\w*) = ")
_COLUMNS = 92


def page() -> str:
    """Return the file with current comments; all other lines stay."""
    lines, section = list[str](), ""
    for line in with_presets(EXAMPLE.read_text("utf-8")).splitlines():
        if head := _HEAD.fullmatch(line):
            section = head[1]
        setting = _SETTING.match(line)
        if setting and (about := _describe(section, setting[1])):
            while lines[-1].startswith("# "):
                lines.pop()
            lines += textwrap.wrap(
                about,
                _COLUMNS,
                initial_indent="# ",
                subsequent_indent="# ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines.append(line)
    return "\n".join(lines) + "\n"


def _describe(section: str, name: str) -> str:
    """Return the description of a setting, "" for a key that is no field."""
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
