"""Settings files of other programs, read and replaced."""

import os
import stat
import sys
from pathlib import Path

import pytest

from byok.clients.settings_file import (
    SettingsFile,
    is_open_to_others,
    read_settings_file,
    remove_settings_file,
    replace_settings_file,
)
from byok.core.errors import ConfigError

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path.resolve() / "me"
    (home / "app").mkdir(parents=True)
    return home


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "app" / "settings.json"
    path.write_bytes(b"old")
    return path


def refuse(path: Path, home: Path, match: str) -> str:
    with pytest.raises(ConfigError, match=match) as caught:
        read_settings_file(path, home)
    return caught.value.hint


def test_settings_file_is_replaced(home: Path, file: Path) -> None:
    read = read_settings_file(file, home)
    assert read == SettingsFile(file, b"old")
    replace_settings_file(read, b"new")
    assert file.read_bytes() == b"new"
    assert list(file.parent.iterdir()) == [file]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o755])
def test_settings_file_keeps_its_mode(home: Path, file: Path, mode: int) -> None:
    file.chmod(mode)
    replace_settings_file(read_settings_file(file, home), b"new")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert is_open_to_others(file) is bool(mode & 0o044)


@posix
def test_settings_file_keeps_its_group(home: Path, file: Path) -> None:
    groups = [g for g in os.getgroups() if g != os.getegid()]
    if not groups and os.geteuid():
        pytest.skip("this user is in one group only")
    other = groups[0] if groups else 12345
    os.chown(file, -1, other)
    replace_settings_file(read_settings_file(file, home), b"new")
    assert file.stat().st_gid == other


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes of Linux")
def test_settings_file_keeps_its_attributes_and_gets_a_new_time(
    home: Path, file: Path
) -> None:
    try:
        os.setxattr(file, "user.note", b"mine")
    except OSError:
        pytest.skip("this disk has no extended attributes")
    os.utime(file, (1, 1))
    replace_settings_file(read_settings_file(file, home), b"new")
    assert os.getxattr(file, "user.note") == b"mine"
    assert file.stat().st_mtime > 1


def test_settings_file_that_is_new_is_private(home: Path) -> None:
    path = home / "app" / "new.json"
    read = read_settings_file(path, home)
    assert read.raw is None
    replace_settings_file(read, b"{}")
    assert path.read_bytes() == b"{}"
    assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
def test_settings_file_behind_links_within_the_home_is_changed_at_its_place(
    home: Path, file: Path
) -> None:
    target = home / "dotfiles" / "code.json"
    target.parent.mkdir()
    file.rename(target)
    file.symlink_to("../dotfiles/code.json")
    (home / "alias").symlink_to("app")
    read = read_settings_file(home / "alias" / "settings.json", home)
    replace_settings_file(read, b"new")
    assert (read.path, target.read_bytes()) == (target, b"new")
    assert file.is_symlink()


@pytest.mark.case("B140")
@posix
def test_settings_file_behind_a_link_out_of_the_home_is_refused(
    home: Path, file: Path
) -> None:
    outside = home.parent / "store" / "settings.json"
    outside.parent.mkdir()
    file.rename(outside)
    file.symlink_to(outside)
    assert "--file" in refuse(file, home, "outside of your home")
    assert "--file" in refuse(home / "app/settings.json", home, "outside")
    file.unlink()
    (home / "linked").symlink_to(outside.parent)
    refuse(home / "linked" / "settings.json", home, "outside of your home")
    (home / "away").symlink_to(outside.parent / "none.json")
    refuse(home / "away", home, "outside of your home")
    assert read_settings_file(outside, home).raw == b"old"  # named without a link


@posix
def test_settings_file_behind_a_circle_of_links_is_refused(home: Path) -> None:
    (home / "a").symlink_to("b")
    (home / "b").symlink_to("a")
    refuse(home / "a", home, r"leads nowhere|no plain file|Too many|symbolic links")


@pytest.mark.case("B140")
@posix
@pytest.mark.parametrize("kind", ["folder", "fifo", "device"])
def test_settings_file_that_is_no_plain_file_is_refused(home: Path, kind: str) -> None:
    path = home / "app" / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    refuse(Path("/dev/null") if kind == "device" else path, home, "no plain file")


@pytest.mark.case("B140")
def test_settings_file_that_is_read_only_is_refused_with_its_cure(
    home: Path, file: Path
) -> None:
    file.chmod(0o444)
    assert "chmod u+w" in refuse(file, home, "read-only")


@pytest.mark.case("B140")
@posix
def test_settings_file_of_another_user_is_refused(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    assert "sudo" in refuse(file, home, "belongs to another user")


@pytest.mark.case("B140")
@posix
def test_settings_file_with_a_second_name_is_refused(home: Path, file: Path) -> None:
    (home / "second").hardlink_to(file)
    refuse(file, home, "a second name")


@pytest.mark.case("B140")
def test_settings_file_that_is_huge_is_refused(home: Path, file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(5_000_001)
    refuse(file, home, "larger than 5,000,000 bytes")
    with pytest.raises(ConfigError, match="larger than 10 bytes"):
        read_settings_file(file, home, largest=10)


def test_settings_file_without_its_folder_is_refused_with_its_cure(home: Path) -> None:
    assert "Start the program once" in refuse(home / "no" / "f", home, "does not exist")


@pytest.mark.case("B141")
@pytest.mark.parametrize("now", [b"theirs", b"", None])
def test_settings_file_that_changed_meanwhile_is_left_alone(
    home: Path, file: Path, now: bytes | None
) -> None:
    read = read_settings_file(file, home)
    file.unlink() if now is None else file.write_bytes(now)
    with pytest.raises(ConfigError, match="changed by another program"):
        replace_settings_file(read, b"new")
    with pytest.raises(ConfigError, match="changed by another program"):
        remove_settings_file(read)
    assert (file.read_bytes() if file.exists() else None) == now
    assert [path for path in file.parent.iterdir() if path != file] == []


@pytest.mark.case("B141")
def test_settings_file_that_appears_meanwhile_is_left_alone(home: Path) -> None:
    path = home / "app" / "new.json"
    read = read_settings_file(path, home)
    path.write_bytes(b"theirs")
    with pytest.raises(ConfigError, match="changed by another program"):
        replace_settings_file(read, b"new")
    assert path.read_bytes() == b"theirs"


def test_settings_file_whose_folder_is_gone_is_an_error_with_a_cure(
    home: Path, file: Path
) -> None:
    read = read_settings_file(file, home)
    file.unlink()
    file.parent.rmdir()
    with pytest.raises(ConfigError, match="Nothing was changed") as caught:
        replace_settings_file(read, b"new")
    assert "by hand" in caught.value.hint
    assert not file.parent.exists()


def test_settings_file_is_removed(home: Path, file: Path) -> None:
    remove_settings_file(read_settings_file(file, home))
    assert not file.exists()
