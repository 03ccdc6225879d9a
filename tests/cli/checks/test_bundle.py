"""The archives for reports."""

import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from byok.cli.checks.bundle import write_bundle, write_parts
from byok.cli.checks.results import CheckRow, good
from byok.cli.checks.surroundings import Machine
from byok.core.platform.paths import find_paths, make_private
from byok.core.record import Hop
from byok.features.capture.capture import Capture, Piece, decode_capture
from tests.fakes.doctors import surroundings, upstream_box, write_settings

SECRETS = {
    "own_prompt": "You are the secret butler.",
    "chat_prompt": "Always mention Project Heron.",
    "endpoint_prompt": "Speak like an owl.",
    "header": "header-canary-0123456789",
    "query": "query-canary-0123456789",
    "proxy": "proxy-canary-0123456789",
    "argument": "argument-canary",
}

CAPTURE = Capture(
    {"id": "a" * 16, "upstream": "box", "model": "m", "byok": "1.2"},
    (Piece(0.0, Hop.FROM_CLIENT, text='{"message": "My words."}'),),
)


def read(file: Path) -> dict[str, str]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


async def test_settings_have_no_secret_and_no_prompt(tmp_path: Path) -> None:
    write_settings(
        *("[chat]", f'system_prompt = "{SECRETS["chat_prompt"]}"'),
        *("[prompts]", f'chat-stream = "{SECRETS["endpoint_prompt"]}"'),
        *upstream_box(
            "https://models.example/v1",
            f'system_prompt = "{SECRETS["own_prompt"]}"',
            f'headers = {{ X-Extra = "{SECRETS["header"]}" }}',
            f'query = {{ code = "{SECRETS["query"]}" }}',
            f'proxy = "http://me:{SECRETS["proxy"]}@proxy.example:1"',
            f'api_key_cmd = ["/bin/pass", "{SECRETS["argument"]}"]',
        ),
    )
    file = tmp_path / "b.zip"
    async with surroundings() as around:
        write_bundle(file, around, [])
    texts = read(file)
    assert [s for s in SECRETS.values() if s in "".join(texts.values())] == []
    settings = json.loads(texts["settings.json"])
    assert settings["chat"]["system_prompt"] == "(29 characters)"
    assert settings["upstreams"]["box"]["api_key_cmd"] == ["/bin/pass"]


async def test_settings_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    write_settings("[serverr]")
    file = tmp_path / "b.zip"
    async with surroundings() as around:
        write_bundle(file, around, [])
    assert "unknown key serverr" in json.loads(read(file)["settings.json"])["error"]


async def test_the_home_folder_is_a_tilde_and_its_neighbours_stay(
    tmp_path: Path,
) -> None:
    rows = [
        CheckRow("x", f"{tmp_path}/me/code", good(f"{tmp_path}/me2 '{tmp_path}/me'"))
    ]
    file = tmp_path / "b.zip"
    async with surroundings(Machine(home=tmp_path / "me")) as around:
        write_bundle(file, around, rows)
    [row] = json.loads(read(file)["doctor.json"])["checks"]
    assert (row["about"], row["found"]) == ("~/code", f"{tmp_path}/me2 '~'")


async def test_the_end_of_the_log_without_escapes(tmp_path: Path) -> None:
    log = find_paths().log
    make_private(log.parent)
    lines = [f"line {number}" for number in range(60_000)]
    log.write_text("\n".join([*lines, "\x1b[2Jlast \u202e"]))
    file = tmp_path / "b.zip"
    async with surroundings() as around:
        write_bundle(file, around, [])
    told = read(file)["log.txt"].splitlines()
    assert len(told) == 500
    assert told[-1] == "\\x1b[2Jlast \\u202e"


@pytest.mark.skipif(os.name != "posix", reason="FIFOs and links")
@pytest.mark.parametrize("kind", ["fifo", "link", "missing", "folder"])
async def test_a_log_that_is_no_file_is_left_out(tmp_path: Path, kind: str) -> None:
    log = find_paths().log
    make_private(log.parent)
    (tmp_path / "other").write_text("of somebody else")
    match kind:
        case "fifo":
            os.mkfifo(log)
        case "link":
            log.symlink_to(tmp_path / "other")
        case "folder":
            log.mkdir()
        case _:
            assert not log.exists()
    file = tmp_path / "b.zip"
    async with surroundings() as around:
        write_bundle(file, around, [])
    assert read(file)["log.txt"] == "\n"


async def test_no_file_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    there, link = tmp_path / "b.zip", tmp_path / "l.zip"
    there.write_text("mine")
    link.symlink_to(tmp_path / "new")
    async with surroundings() as around:
        for file in (there, link):
            with pytest.raises(FileExistsError):
                write_bundle(file, around, [])
    assert there.read_text() == "mine"
    assert not (tmp_path / "new").exists()


async def test_nothing_is_left_of_an_archive_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    file = tmp_path / "b.zip"
    async with surroundings() as around:
        with pytest.raises(OSError, match="No space"):
            write_bundle(file, around, [])
    assert not file.exists()


async def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "b.zip"
    before = os.umask(0)
    try:
        async with surroundings() as around:
            write_bundle(file, around, [])
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_parts_hold_no_words_unless_they_are_wanted() -> None:
    async with surroundings() as around:
        hidden = await write_parts(CAPTURE, around, with_content=False)
        shown = await write_parts(CAPTURE, around, with_content=True)
    assert [*hidden] == ["README.txt", "capture.jsonl", "model.json"]
    assert "byok 1.2" in str(hidden["README.txt"])
    assert b"My words." not in bytes(hidden["capture.jsonl"])  # type: ignore[arg-type]
    assert decode_capture(bytes(shown["capture.jsonl"])) == CAPTURE  # type: ignore[arg-type]
    assert "--with-content" in str(shown["README.txt"])
    assert hidden["model.json"] == b"{}"
