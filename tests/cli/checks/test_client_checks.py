"""Clients that point at byok, elsewhere, or at byok in the wrong way."""

import json
import os
import sys
from pathlib import Path, PurePosixPath

import pytest

from byok.cli.checks.base import (
    CannotCheck,
    CheckContext,
    CheckResult,
    CheckState,
    Machine,
)
from byok.cli.checks.setup_checks import (
    ClientFile,
    check_client,
    client_files,
    clients,
    read_text,
)
from byok.clients.connection import (
    DaemonAddress,
    Pointer,
    read_pointers,
    settings_for,
)
from byok.clients.document import put_all
from byok.clients.locations import WRITABLE, ClientKind
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.doctors import judged, surroundings, write_settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="places of Linux")
OWN = "http://127.0.0.1:9123"
URL, TOKEN = "http://127.0.0.1:8317", "token-0123456789"
BYOK = DaemonAddress(URL, TOKEN, PurePosixPath("/state/token"), "byok:box:m")
KEYS = (
    f'"augment.advanced.completionURL": "{URL}", "augment.advanced.apiToken": "{TOKEN}"'
)
INNER = f'"completionURL": "{URL}", "apiToken": "{TOKEN}"'


def settings_with(home: Path, url: str, token: str) -> None:
    """Write the settings of VS Code below a home."""
    keys = {"augment.advanced.completionURL": url, "augment.advanced.apiToken": token}
    user = home / ".config" / "Code" / "User"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(json.dumps(keys))


async def check_editor(around: CheckContext) -> CheckResult:
    [name] = await clients(around)
    assert name.startswith("vscode /")
    return await check_client(around, name)


@pytest.mark.parametrize(
    ("url", "own_token", "state", "said"),
    [
        (OWN, True, CheckState.OK, "points at byok, port 9123"),
        ("http://localhost:9123/", True, CheckState.OK, "points at byok"),
        (OWN, False, CheckState.FAILURE, "token is not the one"),
        ("http://127.0.0.1:8000", True, CheckState.FAILURE, ":8000, not at byok"),
        ("https://127.0.0.1:9123", True, CheckState.FAILURE, "https://127.0.0.1:9123"),
        ("https://t.example/x", True, CheckState.WARNING, "https://t.example:443,"),
        ("http://127.0.0.1:port", True, CheckState.FAILURE, "no address"),
    ],
)
async def test_where_an_editor_points_to(
    tmp_path: Path, url: str, own_token: bool, state: CheckState, said: str
) -> None:
    write_settings("[server]", "port = 9123")
    token = read_token(find_paths().token)
    given = token if own_token else "another-token-0123456789"
    settings_with(tmp_path, url, given)
    async with surroundings(Machine(home=tmp_path), {}) as around:
        result = await check_editor(around)
        assert given not in around.redactor(given)
    judged(result, state, said)
    assert (result.cure == "byok connect vscode --write") is (
        state is not CheckState.OK
    )


async def test_without_a_token_nothing_is_created(tmp_path: Path) -> None:
    write_settings("[server]", "port = 9123")
    settings_with(tmp_path, OWN, "t")
    async with surroundings(Machine(home=tmp_path), {}) as around:
        with pytest.raises(CannotCheck, match="no token"):
            await check_editor(around)
    assert not find_paths().token.exists()


async def test_a_client_with_one_address_may_use_it_for_others(tmp_path: Path) -> None:
    write_settings("[server]", "port = 9123")
    token = read_token(find_paths().token)
    options = f"openai-api-base: https://api.example/v1\nopenai-api-key: {token}\n"
    (tmp_path / ".aider.conf.yml").write_text(options)
    async with surroundings(Machine(home=tmp_path), {}) as around:
        [name] = await clients(around)
        result = await check_client(around, name)
    assert result.state is CheckState.NOT_CHECKED
    assert result.cure == "byok connect aider --write"


def read_editor(folder: Path, content: bytes) -> list[Pointer]:
    file = folder / "settings.json"
    file.write_bytes(content)
    text = read_text(ClientFile(ClientKind.VSCODE, file))
    return read_pointers(ClientKind.VSCODE, text, BYOK)


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        (f"{{{KEYS}}}", True),
        (f'{{"augment.advanced": {{{INNER}}}}}', True),
        (f'{{"augment.advanced": {{"completionURL": "other"}}, {KEYS}}}', False),
        (f'{{"augment.advanced.completionURL": "x", {INNER}}}', False),
    ],
    ids=range(4),
)
def test_settings_of_an_editor_are_read(
    tmp_path: Path, text: str, is_right: bool
) -> None:
    found = read_editor(tmp_path, text.encode())
    assert all(one.is_right for one in found) is is_right


@pytest.mark.parametrize(
    "text",
    [
        *("", " // nothing\n", "{}", '{"augment.advanced": 1}'),
        *('{"augment.advanced.completionURL": null}', '{"completionURL": "x"}'),
        '{"x": {"augment.advanced.completionURL": {"y": "x"}}}',
    ],
)
def test_settings_of_an_editor_without_byok(tmp_path: Path, text: str) -> None:
    assert read_editor(tmp_path, text.encode()) == []


@pytest.mark.parametrize("raw", [b"{", b" " * 5_000_001, b"[" * 100_000], ids=range(3))
def test_broken_settings_are_refused(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_editor(tmp_path, raw)


@pytest.mark.parametrize("client", WRITABLE)
def test_what_connect_writes_is_read(client: ClientKind) -> None:
    text = put_all("", settings_for(client, BYOK), client.text_format)
    found = read_pointers(client, text, BYOK)
    assert all(one.is_right for one in found)
    has_token = client not in (ClientKind.CODEX, ClientKind.OPENCODE)
    assert len(found) == 1 + has_token


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("vscode", ".config/Code/User/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
    ],
)
async def test_code_search_with_an_old_token_is_found(
    tmp_path: Path, client: str, file: str
) -> None:
    write_settings("[server]", "port = 9123")
    kind, path = ClientKind(client), tmp_path / file
    path.parent.mkdir(parents=True)
    results = []
    for token in (read_token(find_paths().token), "another-token-0123456789"):
        byok = BYOK._replace(url=OWN, token=token)
        entry = settings_for(kind, byok, mcp=True)
        path.write_text(put_all("", entry, kind.text_format))
        async with surroundings(Machine(home=tmp_path), {}) as around:
            [name] = await clients(around)
            results.append(await check_client(around, name))
    assert [one.state for one in results] == [CheckState.OK, CheckState.FAILURE]
    assert results[1].cure == f"byok connect {client} --mcp --write"


def test_files_of_all_clients_are_found(tmp_path: Path) -> None:
    settings = tmp_path / "elsewhere"
    environ = {"XDG_CONFIG_HOME": str(settings)}
    names = [
        settings / "Cursor" / "User" / "settings.json",
        settings / "Code" / "User" / "settings.json",
        settings / "Code" / "User" / "profiles" / "a1" / "settings.json",
        tmp_path / ".vscode-server" / "data" / "Machine" / "settings.json",
        tmp_path / ".codex" / "config.toml",
        tmp_path / ".aider.conf.yml",
        settings / "Code" / "User" / "mcp.json",
        tmp_path / ".claude.json",
    ]
    for name in names:
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text("{}")
    fifo = settings / "VSCodium" / "User" / "settings.json"
    fifo.parent.mkdir(parents=True)
    os.mkfifo(fifo)
    found = client_files(tmp_path, environ)
    assert [file.path for file in found] == names
    assert [file.path for file in found if not file.is_usual] == names[2:4]
