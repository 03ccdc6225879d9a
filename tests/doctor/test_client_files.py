"""Settings of clients as people have them, and where they point to."""

import os
import sys
from pathlib import Path, PurePosixPath

import pytest

from byok.client_settings.client_kind import ClientKind
from byok.client_settings.document import put_all
from byok.client_settings.wanted_settings import FORMATS, DaemonAddress, settings_for
from byok.doctor.client_files import ClientFile, client_files, read_target

URL, TOKEN = "http://127.0.0.1:8317", "token-0123456789"
BYOK = DaemonAddress(URL, TOKEN, PurePosixPath("/state/token"), "byok:box:m")
KEYS = (
    f'"augment.advanced.completionURL": "{URL}", "augment.advanced.apiToken": "{TOKEN}"'
)
INNER = f'"completionURL": "{URL}", "apiToken": "{TOKEN}"'


def editor_file(folder: Path, content: bytes) -> ClientFile:
    file = folder / "settings.json"
    file.write_bytes(content)
    return ClientFile(ClientKind.VSCODE, file)


@pytest.mark.parametrize(
    "text",
    [
        f"{{{KEYS}}}",
        f"\ufeff{{\r\n  // a comment, with a brace }}\r\n  {KEYS},\r\n}}\r\n",
        f'{{"a": [1, 2, ], "b": "\\"}},", {KEYS}}}',
        f'{{"augment.advanced": {{{INNER}}}}}',
        f'{{"augment.advanced": {{"completionURL": "other"}}, {KEYS}}}',
        f'{{"augment.advanced.completionURL": "x", "augment.advanced": {{{INNER}}}}}',
    ],
    ids=range(6),
)
def test_settings_of_an_editor_are_read(tmp_path: Path, text: str) -> None:
    assert read_target(editor_file(tmp_path, text.encode())) == (URL, TOKEN)


@pytest.mark.parametrize(
    "text",
    [
        *("", " // nothing\n", "{}", '{"augment.advanced": 1}'),
        *('{"augment.advanced.completionURL": null}', '{"completionURL": "x"}'),
        '{"x": {"augment.advanced.completionURL": {"y": "x"}}}',
    ],
    ids=str,
)
def test_settings_of_an_editor_without_byok(tmp_path: Path, text: str) -> None:
    assert read_target(editor_file(tmp_path, text.encode())) == ("", "")


@pytest.mark.parametrize(
    "raw",
    [b"{", b'{"a": "open}', b"{} x", b"\xff\xfe{", b" " * 5_000_001, b"[" * 100_000],
    ids=range(6),
)
def test_broken_settings_are_refused(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_target(editor_file(tmp_path, raw))


@pytest.mark.parametrize("client", FORMATS)
def test_what_connect_writes_is_read(tmp_path: Path, client: ClientKind) -> None:
    text = put_all("", settings_for(client, BYOK), FORMATS[client])
    file = tmp_path / "settings"
    file.write_text(text)
    url, token = read_target(ClientFile(client, file))
    assert url.removesuffix("/v1") == URL
    elsewhere = (ClientKind.CODEX, ClientKind.OPENCODE)
    assert token == (None if client in elsewhere else TOKEN)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (ClientKind.CODEX, 'model = "o"\n'),
        (ClientKind.OPENCODE, '{"provider": {"other": {}}}'),
        (ClientKind.AIDER, "model: o\n"),
        (ClientKind.CONTINUE, "models:\n  - name: other\n"),
    ],
)
def test_other_clients_without_byok(
    tmp_path: Path, client: ClientKind, text: str
) -> None:
    file = tmp_path / "settings"
    file.write_text(text)
    assert read_target(ClientFile(client, file)) == ("", None)


@pytest.mark.skipif(sys.platform != "linux", reason="places of Linux")
@pytest.mark.parametrize("moved", [True, False])
def test_files_of_all_clients_are_found(tmp_path: Path, *, moved: bool) -> None:
    settings = tmp_path / ("elsewhere" if moved else ".config")
    environ = {"XDG_CONFIG_HOME": str(settings)} if moved else {}
    names = [
        settings / "Cursor" / "User" / "settings.json",
        settings / "Code" / "User" / "settings.json",
        settings / "Code" / "User" / "profiles" / "a1" / "settings.json",
        tmp_path / ".vscode-server" / "data" / "Machine" / "settings.json",
        tmp_path / ".codex" / "config.toml",
        tmp_path / ".aider.conf.yml",
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
