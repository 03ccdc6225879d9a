"""Files, folders and disks."""

import errno
import os
import sys
from pathlib import Path

import pytest

from byok.daemon.token import read_token
from byok.doctor.examine import examine
from byok.doctor.files import (
    check_disk,
    check_folder,
    check_other_token,
    check_temporary_folder,
    check_token,
    folders,
    other_tokens,
    try_to_write,
)
from byok.doctor.registry import Check
from byok.doctor.results import CheckState
from byok.doctor.surroundings import Machine
from byok.platform.paths import find_paths, make_private
from tests.fakes.doctors import surroundings

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")


async def test_a_token_is_good_missing_or_gone() -> None:
    paths = find_paths()
    async with surroundings() as around:
        assert (await check_token(around, "")).state is CheckState.NOT_CHECKED
        make_private(paths.state_dir)
        paths.daemon.write_text("{}")
        gone = await check_token(around, "")
        assert not paths.token.exists()
        token = read_token(paths.token)
        found = await check_token(around, "")
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
    async with surroundings() as around:
        result = await check_token(around, "")
    assert result.state is CheckState.FAILURE
    assert cure in result.cure


@posix
@pytest.mark.parametrize("name", ["metrics-token", "owner-secret"])
@pytest.mark.parametrize(
    ("content", "mode", "state", "cure"),
    [
        ("t" * 40, 0o600, CheckState.OK, ""),
        ("t" * 40, 0o644, CheckState.FAILURE, "chmod 600"),
        ("t", 0o600, CheckState.FAILURE, ""),
        ("", 0o600, CheckState.FAILURE, ""),
    ],
)
async def test_the_other_secrets_are_looked_at(
    name: str, content: str, mode: int, state: CheckState, cure: str
) -> None:
    file = find_paths().state_dir / name
    make_private(file.parent)
    file.write_text(content)
    file.chmod(mode)
    async with surroundings() as around:
        [row] = await examine(around, [Check("x", check_other_token, other_tokens)])
        assert (content in around.redactor(content)) is (state is not CheckState.OK)
    assert (row.about, row.result.state) == (str(file), state)
    assert cure in row.result.cure
    assert bool(row.result.cure) is (state is not CheckState.OK)


async def test_tokens_that_nobody_uses_are_neither_checked_nor_made() -> None:
    async with surroundings() as around:
        assert await other_tokens(around) == []
    assert not find_paths().state_dir.exists()


@posix
@pytest.mark.parametrize(
    ("mode", "state"),
    [
        (0o700, CheckState.OK),
        (0o750, CheckState.WARNING),
        (0o770, CheckState.FAILURE),
    ],
)
async def test_a_folder_is_for_its_owner(mode: int, state: CheckState) -> None:
    folder = find_paths().state_dir
    make_private(folder)
    folder.chmod(mode)
    async with surroundings() as around:
        assert str(folder) in await folders(around)
        result = await check_folder(around, str(folder))
    assert result.state is state
    assert ("chmod go=" in result.cure) is (state is not CheckState.OK)


@posix
async def test_a_private_file_that_others_may_read_is_named() -> None:
    file = find_paths().vault
    make_private(file.parent)
    file.write_text("{}")
    file.chmod(0o644)
    async with surroundings() as around:
        result = await check_folder(around, str(file.parent))
    assert (result.state, str(file) in result.cure) == (CheckState.WARNING, True)


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs chown")
async def test_a_folder_of_another_user_is_named() -> None:
    folder = find_paths().data_dir
    make_private(folder)
    os.chown(folder, 12345, -1)
    async with surroundings() as around:
        result = await check_folder(around, str(folder))
    assert result.state is CheckState.FAILURE
    assert "chown" in result.cure


@pytest.mark.parametrize(
    ("free", "state"),
    [
        (10**12, CheckState.OK),
        (10**8, CheckState.WARNING),
        (1000, CheckState.FAILURE),
    ],
)
async def test_room_on_the_disk(free: int, state: CheckState) -> None:
    async with surroundings(Machine(free=lambda folder: free)) as around:
        result = await check_disk(around, "")
    assert result.state is state


def test_writing_leaves_nothing_and_tells_why_it_failed(tmp_path: Path) -> None:
    assert try_to_write(tmp_path) is None
    assert [*tmp_path.iterdir()] == []
    failure = try_to_write(tmp_path / "missing")
    assert failure is not None
    assert failure.errno == errno.ENOENT


async def test_a_folder_that_cannot_be_written_to_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from byok.doctor import files

    def refuse(folder: Path) -> OSError:
        return OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files, "try_to_write", refuse)
    async with surroundings() as around:
        disk = await check_disk(around, "")
        temporary = await check_temporary_folder(around, "")
    assert {disk.state, temporary.state} == {CheckState.FAILURE}
    assert "Read-only" in disk.found


async def test_the_temporary_folder_is_named(tmp_path: Path) -> None:
    async with surroundings() as around:
        assert (await check_temporary_folder(around, "")).state is CheckState.OK
