"""Checks of clients: that their settings point at byok, with its token."""

import hmac
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from byok.cli.checks.base import (
    CannotCheck,
    CheckResult,
    Surroundings,
    doubtful,
    good,
    in_background,
    skip,
    wrong,
)
from byok.clients import jsonc
from byok.clients.connection import FORMATS
from byok.clients.document import EDITORS, TextFormat
from byok.clients.editor import SettingPath, decode_text
from byok.clients.locations import (
    EDITOR_FOLDERS,
    ClientKind,
    ClientMachine,
    RunPlace,
    find_location,
)
from byok.core.daemon.token import read_token
from byok.core.errors import ConfigError
from byok.core.escapes import shell_word
from byok.core.urls import is_loopback
from byok.core.wire.json_body import parse_json

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
VARIABLE = "AUGMENT_API_URL"
_TOKEN_VARIABLE = "AUGMENT_API_TOKEN"  # noqa: S105 - a name
_HTTP = 80


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
    for client in sorted(EDITOR_FOLDERS):
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
    editor = EDITORS[format]
    found = _text(editor.read(text, token)) if token else ""
    return ClientTarget(_text(editor.read(text, url)), found or None)


def _read_editor(text: str) -> ClientTarget:
    """Read whole keys and those in an object: of two the last in the file counts."""
    found = dict.fromkeys(_KEYS, "")
    for leaf in jsonc.leaves(text):
        name = ".".join(leaf.path)
        if name in found and leaf.text.startswith('"'):
            found[name] = _text(parse_json(leaf.text.encode("utf-8", "replace")))
    return ClientTarget(*found.values())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


async def clients(around: Surroundings) -> Sequence[str]:
    """Return the settings files that exist, and the variable if it is set."""
    named = [VARIABLE] if around.environ.get(VARIABLE) else []
    return [*await _files(around), *named]


async def _files(around: Surroundings) -> Mapping[str, ClientFile]:
    """Return the files by what they are called: the editors', and those with byok."""

    async def find() -> Mapping[str, ClientFile]:
        home, environ = around.machine.home, around.environ
        found = await in_background(lambda: client_files(home, environ))
        return {f"{file.client} {file.path}": file for file in found}

    return await around.once("clients", find)


async def check_client(around: Surroundings, about: str) -> CheckResult:
    """Check where a settings file, or the variables, point a client to."""
    if about == VARIABLE:
        url, token = around.environ[VARIABLE], around.environ.get(_TOKEN_VARIABLE, "")
        return await _judge(
            around, ClientTarget(url, token), 'eval "$(byok connect cli)"'
        )
    file = (await _files(around))[about]
    cure = _cure(file)
    try:
        target = await in_background(lambda: read_target(file))
    except ValueError as error:
        return doubtful(f"it cannot be read: {error}", "Correct it in its program")
    if not target.url or _is_of_others(file.client, target):
        return skip("it does not point its client at byok", cure)
    return await _judge(around, target, cure)


def _is_of_others(client: ClientKind, target: ClientTarget) -> bool:
    """Tell whether a client that has one address only uses it for somebody else."""
    return client is ClientKind.AIDER and not is_loopback(target.url)


def _cure(file: ClientFile) -> str:
    where = "" if file.is_usual else f" --file {shell_word(file.path)}"
    return f"byok connect {file.client} --write{where}"


async def _judge(around: Surroundings, target: ClientTarget, cure: str) -> CheckResult:
    around.redactor.add(target.token or "")
    try:
        parts = urlsplit(target.url)
        host, port = parts.hostname or "", parts.port or _HTTP
    except ValueError:
        return wrong("its address is none", cure)
    if not is_loopback(target.url):
        return doubtful(f"it points at {parts.scheme}://{host}, not at byok", cure)
    if parts.scheme != "http":
        return wrong(f"it says {parts.scheme}://, and byok speaks plain HTTP", cure)
    own = await _own_port(around)
    if own and port != own:
        return wrong(f"it points at port {port}, and byok is at {own}", cure)
    token = target.token
    if token is not None and not await in_background(lambda: _is_own(around, token)):
        return wrong("its token is not the one of byok", cure)
    return good(f"it points at byok, port {port}")


async def _own_port(around: Surroundings) -> int:
    """Return the port of the daemon, else that of the settings; 0 if any will do."""
    if daemon := await around.running():
        return daemon.port
    return (await around.settings()).server.port


def _is_own(around: Surroundings, given: str) -> bool:
    if not around.paths.token.exists():
        raise CannotCheck("there is no token yet")
    try:
        token = read_token(around.paths.token)
    except ConfigError as error:
        raise CannotCheck("the token cannot be used") from error
    bare = given.removeprefix("Bearer ").strip()
    return hmac.compare_digest(bare.encode("utf-8", "replace"), token.encode())
