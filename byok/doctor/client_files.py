"""The settings files of editors: where they are, and what they say of byok."""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server")
_MOST_BYTES, _MOST_PROFILES = 2**20, 20
_SECTION = "augment.advanced"
# Either part matches to the end of the text if its own end is missing.
_STRING = r'"(?:\\.|[^"\\])*(?:"|\Z)'
_COMMENTS = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMAS = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


class ClientTarget(NamedTuple):
    """Where a client is pointed to; "" for what it does not say."""

    url: str
    token: str


def settings_files(home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the users' settings files of VS Code and its relatives that exist."""
    found = []
    for name in _EDITORS:
        user = _folder(home, environ) / name / "User"
        found.append(user / "settings.json")
        profiles = sorted((user / "profiles").glob("*/settings.json"))
        found += profiles[:_MOST_PROFILES]
    found += [home / name / "data" / "Machine" / "settings.json" for name in _SERVERS]
    return [file for file in found if file.is_file()]


def _folder(home: Path, environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    given = environ.get("XDG_CONFIG_HOME", "")
    return Path(given) if Path(given).is_absolute() else home / ".config"


def read_target(file: Path) -> ClientTarget:
    """Return where an editor's settings point to, by whole keys or by a section.

    Raises:
        ValueError: they are not JSON, even without comments and last commas.
        OSError: they cannot be read.
    """
    with file.open("rb") as opened:
        raw = opened.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ValueError("it is larger than 1 MiB")
    given = dict(_flatten(_parse(raw.decode("utf-8-sig"))))
    url, token = (given.get(name) for name in ("completionURL", "apiToken"))
    return ClientTarget(*(v if isinstance(v, str) else "" for v in (url, token)))


def _parse(text: str) -> Any:
    bare = _COMMENTS.sub(lambda match: match[1] or " ", text)
    bare = _LAST_COMMAS.sub(lambda match: match[1] or "", bare)
    return orjson.loads(bare) if bare.strip() else {}


def _flatten(settings: Any) -> Iterator[tuple[str, Any]]:
    """Give what is set below the section; a whole key counts more."""
    if not isinstance(settings, dict):
        raise ValueError("it is no object")
    section = settings.get(_SECTION)
    if isinstance(section, dict):
        yield from section.items()
    for key, value in settings.items():
        if key.startswith(f"{_SECTION}."):
            yield key.removeprefix(f"{_SECTION}."), value
