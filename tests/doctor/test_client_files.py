"""Editors' settings as people have them: comments, last commas, BOM, CRLF, sections."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

from byok.doctor.client_files import read_target, settings_files

URL, TOKEN = "http://127.0.0.1:8317", "token-0123456789"
KEYS = (
    f'"augment.advanced.completionURL": "{URL}", "augment.advanced.apiToken": "{TOKEN}"'
)


@pytest.mark.parametrize(
    "text",
    [
        f"{{{KEYS}}}",
        f"{{{KEYS},}}",
        f"\ufeff{{\r\n  // a comment, with a brace }}\r\n  {KEYS},\r\n}}\r\n",
        f'/* all\nof mine */{{"a": "http://x // no comment", {KEYS} /* end */ , }}',
        f'{{"a": [1, 2, ], "b": "\\"}},", {KEYS}}}',
        f'{{"augment.advanced": {{"completionURL": "{URL}", "apiToken": "{TOKEN}"}}}}',
        f'{{"augment.advanced": {{"completionURL": "other"}}, {KEYS}}}',
    ],
    ids=range(7),
)
def test_settings_are_read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(text.encode())
    assert read_target(file) == (URL, TOKEN)


@pytest.mark.parametrize(
    "text",
    ["", " // nothing\n", "{}", '{"augment.advanced": 1}', '{"augment.advanced.x": 1}'],
    ids=str,
)
def test_settings_without_byok_name_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    assert read_target(file) == ("", "")


@pytest.mark.parametrize(
    "raw",
    [
        *(b"{", b"[]", b'{"a": "open}', b"/* open", b"{} x", b"\xff\xfe{"),
        b" " * (2**20 + 1),
        b"[" * 100_000,
    ],
    ids=range(8),
)
def test_broken_settings_are_refused(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(raw)
    if raw == b"/* open":  # an editor reads that as empty
        assert read_target(file) == ("", "")
        return
    with pytest.raises(ValueError, match=r"\S"):
        read_target(file)


@pytest.mark.parametrize("piece", ["/*", '"', ",", ", ", "//", '\\"', "}"], ids=str)
def test_reading_takes_linear_time(tmp_path: Path, piece: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(piece * (2**20 // len(piece)))
    with contextlib.suppress(ValueError):  # it is not JSON; that this ends is the test
        read_target(file)


@pytest.mark.skipif(sys.platform != "linux", reason="places of Linux")
@pytest.mark.parametrize("moved", [True, False])
def test_files_of_all_editors_are_found(tmp_path: Path, *, moved: bool) -> None:
    settings = tmp_path / ("elsewhere" if moved else ".config")
    environ = {"XDG_CONFIG_HOME": str(settings)} if moved else {}
    names = [
        settings / "Code" / "User" / "settings.json",
        settings / "Code" / "User" / "profiles" / "a1" / "settings.json",
        settings / "Code - Insiders" / "User" / "settings.json",
        settings / "VSCodium" / "User" / "settings.json",
        settings / "Cursor" / "User" / "settings.json",
        tmp_path / ".vscode-server" / "data" / "Machine" / "settings.json",
    ]
    for name in names:
        name.parent.mkdir(parents=True)
        name.write_text("{}")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / ".cursor-server" / "data" / "Machine").mkdir(parents=True)
    (tmp_path / ".cursor-server" / "data" / "Machine" / "settings.json").symlink_to(
        tmp_path / "fifo"
    )
    assert settings_files(tmp_path, environ) == names
