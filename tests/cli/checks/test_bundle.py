"""The archives for reports."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from byok.cli.checks.bundle import write_bundle
from byok.core.platform.paths import find_paths, make_private
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
@pytest.mark.parametrize("kind", ["fifo", "link"])
async def test_a_log_that_is_no_file_is_left_out(tmp_path: Path, kind: str) -> None:
    log = find_paths().log
    make_private(log.parent)
    (tmp_path / "other").write_text("of somebody else")
    if kind == "fifo":
        os.mkfifo(log)
    else:
        log.symlink_to(tmp_path / "other")
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
