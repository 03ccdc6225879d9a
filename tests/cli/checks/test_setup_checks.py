"""Settings, variables, files, disks and ripgrep."""

import os
import sys
from pathlib import Path

import pytest

from byok.cli.checks import setup_checks
from byok.cli.checks.base import CheckState, Machine
from byok.cli.checks.setup_checks import (
    check_disk,
    check_folder,
    check_own_prompts,
    check_proxies,
    check_ripgrep,
    check_settings_file,
    check_token,
    folders,
)
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths, make_private
from tests.fakes.doctors import judged, run_check, surroundings, write_settings

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["[server"], "is not valid TOML"),
        (["[routing]", 'default = "byok:x:y"'], "not configured"),
        (["[serve]", "[log]", 'level = "loud"'], "(1 more)"),
    ],
)
async def test_settings_that_cannot_be_used_are_named(
    lines: list[str], found: str
) -> None:
    write_settings(*lines)
    result = await run_check(check_settings_file)
    judged(result, CheckState.FAILURE, found)
    assert result.cure


@pytest.mark.parametrize(
    ("environ", "state"),
    [
        ({}, CheckState.OK),
        ({"http_proxy": "http://p:1"}, CheckState.WARNING),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, CheckState.OK),
        ({"HTTP_PROXY": "http://p:1", "no_proxy": "127.0.0.1"}, CheckState.WARNING),
        (
            {"HTTP_PROXY": "http://p:1", "no_proxy": "127.0.0.1, localhost"},
            CheckState.OK,
        ),
    ],
)
async def test_a_proxy_must_not_catch_what_is_for_byok(
    environ: dict[str, str], state: CheckState
) -> None:
    result = await run_check(check_proxies, environ=environ)
    assert result.state is state
    if result.cure:
        given = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        hosts = ("127.0.0.1", "localhost", "::1")
        names = ",".join(dict.fromkeys([*filter(None, given.split(",")), *hosts]))
        assert result.cure == f"export NO_PROXY={names}"
        assert "p:1" not in result.found  # it may hold a password


async def test_own_prompts_that_cannot_be_used_are_named_without_their_text() -> None:
    folder = find_paths().prompts
    async with surroundings() as around:
        assert check_own_prompts(around).found == "none of your own"
        folder.mkdir(parents=True, mode=0o700)
        (folder / "title.md").write_text("Name it.")
        (folder / "title.md").chmod(0o600)
        well = check_own_prompts(around)
        (folder / "title.md").write_text("\n{{secret}}")
        (folder / "\x1b[2J.md").write_text("x")
        broken = check_own_prompts(around)
    assert (well.state, well.found) == (CheckState.OK, f"1 of your own in {folder}")
    assert broken.state is CheckState.FAILURE
    assert broken.found == r"\x1b[2J.md cannot be used (1 more)"
    assert broken.cure == "byok prompts check"


async def test_a_token_is_good_missing_or_gone() -> None:
    paths = find_paths()
    async with surroundings() as around:
        assert check_token(around).state is CheckState.NOT_CHECKED
        make_private(paths.state_dir)
        paths.daemon.write_text("{}")
        gone = check_token(around)
        assert not paths.token.exists()
        token = read_token(paths.token)
        found = check_token(around)
        assert token not in around.redactor(token)
    assert (gone.state, found.state) == (CheckState.FAILURE, CheckState.OK)
    assert "byok token rotate" in gone.cure


@posix
@pytest.mark.parametrize(
    ("content", "mode", "cure"),
    [("t" * 40, 0o640, "chmod 600"), ("", 0o600, "byok token rotate")],
)
async def test_a_token_that_cannot_be_used_is_named(
    content: str, mode: int, cure: str
) -> None:
    file = find_paths().token
    make_private(file.parent)
    file.write_text(content)
    file.chmod(mode)
    result = await run_check(check_token)
    judged(result, CheckState.FAILURE, cure=cure)


@posix
@pytest.mark.parametrize(
    ("mode", "state"),
    [(0o700, CheckState.OK), (0o750, CheckState.WARNING), (0o770, CheckState.FAILURE)],
)
async def test_a_folder_is_for_its_owner(mode: int, state: CheckState) -> None:
    folder = find_paths().state_dir
    make_private(folder)
    folder.chmod(mode)
    async with surroundings() as around:
        assert str(folder) in await folders(around)
        result = check_folder(around, str(folder))
    assert result.state is state
    assert ("chmod go=" in result.cure) is (state is not CheckState.OK)


@posix
async def test_what_was_said_in_conversations_is_for_its_owner() -> None:
    file = find_paths().memory
    make_private(file.parent)
    file.touch(0o644)
    file.chmod(0o644)
    result = await run_check(check_folder, str(file.parent))
    judged(result, CheckState.WARNING, str(file), cure=str(file))


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs chown")
async def test_a_folder_of_another_user_is_named() -> None:
    folder = find_paths().data_dir
    make_private(folder)
    os.chown(folder, 12345, -1)
    result = await run_check(check_folder, str(folder))
    judged(result, CheckState.FAILURE, cure="chown")


@pytest.mark.parametrize(
    ("free", "state"),
    [(10**12, CheckState.OK), (10**8, CheckState.WARNING), (1000, CheckState.FAILURE)],
)
async def test_room_on_the_disk(free: int, state: CheckState) -> None:
    result = await run_check(check_disk, machine=Machine(free=lambda folder: free))
    assert result.state is state


@pytest.mark.parametrize(
    ("script", "said"),
    [("exec cat", "does not find a word"), (None, "cannot be started")],
)
async def test_a_ripgrep_that_does_not_work_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, said: str
) -> None:
    monkeypatch.setattr(setup_checks, "_RIPGREP_SECONDS", 0.5)
    fake = tmp_path / "rg"
    fake.write_text(f"#!/bin/sh\n{script}\n" if script else "#!/no/such/shell\n")
    fake.chmod(0o700)
    result = await run_check(check_ripgrep, environ={"PATH": str(tmp_path)})
    judged(result, CheckState.FAILURE, said, "Install ripgrep")


async def test_ripgrep_of_the_working_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "rg"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    result = await run_check(check_ripgrep, environ={"PATH": f".:{tmp_path}"})
    assert result.state is CheckState.WARNING
    assert not (tmp_path / "ran").exists()
