"""Where clients have their settings, and where those point to."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from byok.client_settings import jsonc
from byok.client_settings.client_kind import EDITORS_LIKE_VSCODE, ClientKind
from byok.client_settings.document import EDITORS, TextFormat
from byok.client_settings.encoding import decode_text
from byok.client_settings.locations import ClientMachine, find_location
from byok.client_settings.run_place import RunPlace
from byok.client_settings.setting import SettingPath
from byok.client_settings.wanted_settings import FORMATS
from byok.wire.json_body import parse_json

_MOST_BYTES, _MOST_SLOW_BYTES = 5_000_000, 500_000  # the latter of TOML and YAML
_MOST_PROFILES = 20
_KEYS = ("augment.advanced.completionURL", "augment.advanced.apiToken")
# Where clients of OpenAI's API name the address, and the token if they hold it.
_PATHS: Mapping[ClientKind, tuple[SettingPath, SettingPath]] = {
    ClientKind.CODEX: (("model_providers", "byok", "base_url"), ()),
    ClientKind.OPENCODE: (("provider", "byok", "options", "baseURL"), ()),
    ClientKind.AIDER: (("openai-api-base",), ("openai-api-key",)),
    ClientKind.CONTINUE: (
        ("models", "name=byok", "apiBase"),
        ("models", "name=byok", "apiKey"),
    ),
}


class ClientFile(NamedTuple):
    """A settings file that exists; `is_usual` if it is where a client has it first."""

    client: ClientKind
    path: Path
    is_usual: bool = True


class ClientTarget(NamedTuple):
    """An address, "" for none; the token is None if it is not in the file."""

    url: str
    token: str | None


def client_files(home: Path, environ: Mapping[str, str]) -> list[ClientFile]:
    """Return the settings files of this user's clients that exist."""
    places = (*_editor_files(home, environ), *_other_files(home, environ))
    return [file for file in places if file.path.is_file()]


def _editor_files(home: Path, environ: Mapping[str, str]) -> Iterator[ClientFile]:
    """Give the files of the user, of profiles, and for windows from other machines."""
    here = ClientMachine(sys.platform, environ, home)
    away = ClientMachine(sys.platform, environ, home, RunPlace.SSH)
    for client in sorted(EDITORS_LIKE_VSCODE):
        user = find_location(client, here).path
        yield ClientFile(client, user)
        profiles = sorted((user.parent / "profiles").glob("*/settings.json"))
        for profile in profiles[:_MOST_PROFILES]:
            yield ClientFile(client, profile, is_usual=False)
        remote = find_location(client, away)
        if remote.is_remote:
            yield ClientFile(client, remote.path, is_usual=False)


def _other_files(home: Path, environ: Mapping[str, str]) -> Iterator[ClientFile]:
    machine = ClientMachine(sys.platform, environ, home)
    yield from (ClientFile(one, find_location(one, machine).path) for one in _PATHS)


def read_target(file: ClientFile) -> ClientTarget:
    """Return where a settings file points its client to.

    Raises:
        ValueError: it cannot be read as what it is to be.
        OSError: it cannot be read at all.
    """
    format = FORMATS[file.client]
    most = _MOST_BYTES if format is TextFormat.JSONC else _MOST_SLOW_BYTES
    with file.path.open("rb") as opened:
        raw = opened.read(most + 1)
    if len(raw) > most:
        raise ValueError(f"it is larger than {most:,} bytes")
    text = decode_text(raw).text
    if file.client.is_editor:
        return _read_editor(text)
    url, token = _PATHS[file.client]
    return ClientTarget(
        _text(_read(text, url, format)), _text(_read(text, token, format)) or None
    )


def _read_editor(text: str) -> ClientTarget:
    """Read whole keys and those in an object: of two the last in the file counts."""
    found = dict.fromkeys(_KEYS, "")
    for leaf in jsonc.leaves(text):
        name = ".".join(leaf.path)
        if name in found and leaf.text.startswith('"'):
            found[name] = _text(parse_json(leaf.text.encode("utf-8", "replace")))
    return ClientTarget(*found.values())


def _read(text: str, path: SettingPath, format: TextFormat) -> Any:
    """Return the value at a path, which may be in a mapping of a list."""
    if not path:
        return None
    editor = EDITORS[format]
    found: Any = editor.read(text, path[:1] if len(path) == 1 else path[:-1])
    return found if len(path) == 1 else _member(found, path[-1])


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
