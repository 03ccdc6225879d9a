"""Settings files of other programs: read, replaced, and their backups."""

import errno
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from byok.clients import settings_file
from byok.clients.locations import ClientKind
from byok.clients.settings_file import (
    Backup,
    BackupStore,
    bytes_digest,
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


@posix
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_settings_file_keeps_its_mode(home: Path, file: Path, mode: int) -> None:
    file.chmod(mode)
    replace_settings_file(read_settings_file(file, home), b"new")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert is_open_to_others(file) is bool(mode & 0o044)


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
    assert "dotfiles" in refuse(file, home, "outside of your home")
    assert "dotfiles" in refuse(home / "app/settings.json", home, "outside")
    file.unlink()
    (home / "linked").symlink_to(outside.parent)
    refuse(home / "linked" / "settings.json", home, "outside of your home")
    (home / "away").symlink_to(outside.parent / "none.json")
    refuse(home / "away", home, "outside of your home")
    assert read_settings_file(outside, home).raw == b"old"  # named without a link


@pytest.mark.case("B140")
@posix
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_settings_file_that_is_no_plain_file_is_refused(home: Path, kind: str) -> None:
    path = home / "app" / "x"
    os.mkfifo(path)
    refuse(Path("/dev/null") if kind == "device" else path, home, "plain file")


@pytest.mark.case("B140")
def test_settings_file_that_is_read_only_is_refused_with_its_cure(
    home: Path, file: Path
) -> None:
    file.chmod(0o444)
    assert "chmod u+w" in refuse(file, home, "read-only")


def test_settings_file_in_a_folder_that_is_read_only_is_told_by_the_folder(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_new_file(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", f"{file}.temporary")

    monkeypatch.setattr(settings_file, "replace_foreign", refuse_new_file)
    with pytest.raises(ConfigError) as caught:
        replace_settings_file(read_settings_file(file, home), b"new")
    assert str(caught.value).startswith(f"{file.parent}: ")
    assert "writable" in caught.value.hint
    assert "BYOK_HOME" not in caught.value.hint


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


@pytest.mark.case("B141")
@pytest.mark.parametrize("now", [b"theirs", None])
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


CLIENT = ClientKind.VSCODE
FILE = Path("/home/me/settings.json")
BEFORE = b"\xef\xbb\xbf{}\r\n"


@pytest.fixture
def store(tmp_path: Path) -> BackupStore:
    return BackupStore(tmp_path / "backups")


def backup(before: bytes | None = BEFORE) -> Backup:
    return Backup(CLIENT, FILE, before).with_written(b"new", {("a", "b"): "d1"})


@pytest.mark.parametrize("before", [BEFORE, None])
def test_backup_is_found_as_it_was_saved(
    store: BackupStore, before: bytes | None
) -> None:
    store.save(backup(before), before)
    assert store.find(CLIENT, FILE) == backup(before)
    assert store.list_paths(CLIENT) == [FILE]
    assert store.find(ClientKind.CURSOR, FILE) is None
    assert store.find(CLIENT, FILE.parent) is None
    assert store.list_paths(ClientKind.CURSOR) == []


@pytest.mark.case("B142")
def test_backup_is_private_and_has_no_secret_in_names(
    store: BackupStore, tmp_path: Path
) -> None:
    secret = b"token-0123456789"
    store.save(Backup(CLIENT, FILE, secret), secret)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [f for f in files if stat.S_IMODE(f.stat().st_mode) != 0o600] == []
    assert [f for f in tmp_path.rglob("*") if secret.decode() in str(f)] == []
    manifest = next(f for f in files if f.name == "manifest.json").read_text()
    facts = json.loads(manifest)
    assert facts["before"] == bytes_digest(secret)
    assert facts["path"] == str(FILE)
    assert facts["time"].endswith("Z")
    assert secret.decode() not in manifest


def test_backup_is_removed_with_all_its_files_and_no_others(
    store: BackupStore, tmp_path: Path
) -> None:
    store.save(backup(), b"edited")
    store.save(backup(b"other"), b"edited")
    assert len([*tmp_path.rglob("*.before")]) == 1
    store.remove(CLIENT, FILE)
    store.remove(CLIENT, FILE)
    assert [*(tmp_path / "backups").iterdir()] == []
    store.save(backup(), None)
    [place] = (tmp_path / "backups").iterdir()
    (place / "foreign").touch()
    store.remove(CLIENT, FILE)
    assert [*place.iterdir()] == [place / "foreign"]


@pytest.mark.parametrize("damage", ["before", "json", "client"])
def test_backup_that_is_damaged_is_an_error_with_a_cure(
    store: BackupStore, tmp_path: Path, damage: str
) -> None:
    store.save(backup(), BEFORE)
    [before] = tmp_path.rglob("*.before")
    manifest = before.with_name("manifest.json")
    if damage == "before":
        before.write_bytes(b"other")
    else:
        texts = {"json": "{", "client": '{"before":null,"client":"x"}'}
        manifest.write_text(texts[damage])
    with pytest.raises(ConfigError) as caught:
        store.find(CLIENT, FILE)
    assert "damaged" in str(caught.value)
    assert "by hand" in caught.value.hint
