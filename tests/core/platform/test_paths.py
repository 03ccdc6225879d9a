"""Where files are, and that private ones are private from their first byte on."""

import errno
import os
import time
from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.core.platform.paths import (
    check_private,
    find_paths,
    list_own_files,
    make_private,
    replace_foreign,
    write_private,
)
from tests.fakes.disk import fill, mounted

needs_modes = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("home", ["byok", ".", "./byok", "../byok"])
def test_a_relative_byok_home_is_refused(home: str) -> None:
    with pytest.raises(ConfigError, match="absolute"):
        find_paths({"BYOK_HOME": home})


def test_own_files_are_all_that_byok_writes_and_nothing_of_the_users(
    tmp_path: Path,
) -> None:
    """`byok uninstall` removes them; BYOK_HOME may name a folder with other files."""
    paths = find_paths({"BYOK_HOME": str(tmp_path)})
    written = {
        path
        for path in vars(paths).values()
        if isinstance(path, Path) and path not in paths.folders
    }
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    names = ("index.html", "token.txt", "memory.db", "log", "prompts-old", "vectors")
    foreign = {tmp_path / name for name in names}
    for path in foreign:
        path.touch()
    own = list_own_files(paths, with_settings=True)
    assert not foreign & {*own}
    assert all(path in own or path.parent in own for path in written)


@needs_modes
def test_private_file_and_its_folder_are_the_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"
    before = os.umask(0)
    try:
        write_private(path, "secret")
    finally:
        os.umask(before)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    check_private(path)


@needs_modes
def test_folder_that_cannot_be_made_is_told_by_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(PermissionError) as caught:
        make_private(tmp_path / "state" / "byok")
    assert caught.value.filename == str(tmp_path)


def test_private_write_replaces_a_file_that_was_open_to_others(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old and long")
    path.chmod(0o666)
    write_private(path, "néw")
    assert path.read_text(encoding="utf-8") == "néw"
    assert mode(path) == 0o600


def test_private_write_replaces_a_symlink_and_not_its_target(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("kept")
    link.symlink_to(target)
    write_private(link, "new")
    assert (target.read_text(), link.read_text()) == ("kept", "new")
    assert not link.is_symlink()


def test_private_write_that_fails_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_private(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_private(path, "\ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.glob(".token*")) == []


def test_foreign_file_is_replaced_once_it_is_prepared(tmp_path: Path) -> None:
    path, left = tmp_path / "settings.json", tmp_path / ".settings.json.abcd1234"
    path.write_text("old")
    left.write_text("of another program")
    os.utime(left, (1, 1))
    seen = []

    def prepare(temporary: Path) -> None:
        seen.append((temporary.parent, temporary.read_bytes(), path.read_text()))

    replace_foreign(path, b"a\r\nb", prepare)
    assert seen == [(tmp_path, b"a\r\nb", "old")]
    assert path.read_bytes() == b"a\r\nb"
    assert sorted(tmp_path.iterdir()) == [left, path]


def test_private_write_removes_old_leftovers_of_a_killed_one(tmp_path: Path) -> None:
    path = tmp_path / "token"
    old, busy = tmp_path / ".token.abcdefgh", tmp_path / ".token.ijklmnop"
    for file, age in ((old, 7200), (busy, 10)):
        file.write_text("secret")
        os.utime(file, (time.time() - age,) * 2)
    write_private(path, "new")
    assert {p.name for p in tmp_path.iterdir()} == {"token", busy.name}


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can give a file away"
)
@pytest.mark.case("B103")
def test_private_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_private(path, "secret")
    os.chown(path, 12345, -1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        check_private(path)


def test_a_full_disk_names_the_file_that_was_not_written(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "64k") as folder:
        fill(folder / "filler")
        with pytest.raises(OSError, match="No space left") as caught:
            write_private(folder / "token", "x" * 9000)
        assert caught.value.filename == str(folder / "token")
        assert [file.name for file in folder.iterdir()] == ["filler"]
