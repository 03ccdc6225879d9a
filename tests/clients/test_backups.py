"""Backups of settings files."""

import json
import stat
from pathlib import Path

import pytest

from byok.clients.locations import ClientKind
from byok.clients.settings_file import Backup, BackupStore, bytes_digest
from byok.core.errors import ConfigError

CLIENT = ClientKind.VSCODE
FILE = Path("/home/me/settings.json")
BEFORE = b"\xef\xbb\xbf{}\r\n"


@pytest.fixture
def store(tmp_path: Path) -> BackupStore:
    return BackupStore(tmp_path / "backups")


def backup(before: bytes | None = BEFORE) -> Backup:
    return Backup(CLIENT, FILE, before).with_written(b"new", {("a", "b"): "d1"})


@pytest.mark.parametrize("before", [BEFORE, b"", None])
def test_backup_is_found_as_it_was_saved(
    store: BackupStore, before: bytes | None
) -> None:
    store.save(backup(before), before)
    assert store.find(CLIENT, FILE) == backup(before)
    assert store.list_paths(CLIENT) == [FILE]
    assert store.find(ClientKind.CURSOR, FILE) is None
    assert store.find(CLIENT, FILE.parent) is None
    assert store.list_paths(ClientKind.CURSOR) == []


def test_backup_of_one_client_is_not_taken_for_another(store: BackupStore) -> None:
    """`vscode` begins the name of `vscode-insiders`."""
    other = Backup(ClientKind.VSCODE_INSIDERS, FILE, None)
    store.save(other, None)
    assert store.list_paths(CLIENT) == []
    assert store.list_paths(ClientKind.VSCODE_INSIDERS) == [FILE]


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


def test_backup_knows_what_byok_wrote() -> None:
    known = backup().with_written(b"newer", {("a", "b"): "d2", ("c",): "d3"})
    assert [known.is_as_written(raw) for raw in (b"new", b"newer", b"x")] == [
        *(True, True, False)
    ]
    assert known.values == {("a", "b"): frozenset({"d1", "d2"}), ("c",): {"d3"}}


def test_backup_remembers_a_limited_number_of_versions() -> None:
    known = backup()
    for n in range(50):
        known = known.with_written(b"%d" % n, {("a", "b"): str(n)})
    assert len(known.after) == len(known.values["a", "b"]) == 20
    assert known.is_as_written(b"49")
    assert not known.is_as_written(b"new")


def test_backup_keeps_a_copy_of_a_file_that_was_edited(
    store: BackupStore, tmp_path: Path
) -> None:
    store.save(backup(), b"edited since")
    [edited] = tmp_path.rglob("edited")
    assert edited.read_bytes() == b"edited since"


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


@pytest.mark.parametrize("damage", ["before", "gone", "json", "list", "client"])
def test_backup_that_is_damaged_is_an_error_with_a_cure(
    store: BackupStore, tmp_path: Path, damage: str
) -> None:
    store.save(backup(), BEFORE)
    [before] = tmp_path.rglob("*.before")
    manifest = before.with_name("manifest.json")
    if damage == "before":
        before.write_bytes(b"other")
    elif damage == "gone":
        before.unlink()
    else:
        texts = {"json": "{", "list": "[]", "client": '{"before":null,"client":"x"}'}
        manifest.write_text(texts[damage])
    with pytest.raises((ConfigError, FileNotFoundError)) as caught:
        store.find(CLIENT, FILE)
    assert isinstance(caught.value, ConfigError)
    assert "damaged" in str(caught.value)
    assert "by hand" in caught.value.hint
