"""The folder of captures: only byok's own files are read or deleted."""

import os
from pathlib import Path

import pytest

from byok.core.errors import ByokError, ConfigError
from byok.core.record import Head, Hop
from byok.features.capture.capture import (
    KEPT_SECONDS,
    MAGIC,
    Capture,
    CaptureFolder,
    Piece,
    decode_capture,
    encode_capture,
)

IDS = ["aaaa111111111111", "aaaa222222222222", "bbbb333333333333"]


@pytest.fixture
def folder(tmp_path: Path) -> CaptureFolder:
    folder = CaptureFolder(tmp_path / "capture")
    for number, name in enumerate(IDS):
        folder.write(Capture({"id": name}, ()))
        os.utime(file_of(folder, name), (1000 + number, 1000 + number))
    return folder


def file_of(folder: CaptureFolder, name: str) -> Path:
    return folder.path / f"{name}.capture.jsonl"


def ids(folder: CaptureFolder) -> list[str]:
    return [stored.id for stored in folder.contents()]


def test_captures_are_private_listed_by_age_and_cleared(folder: CaptureFolder) -> None:
    assert ids(folder) == IDS
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert {f.stat().st_mode & 0o777 for f in folder.path.iterdir()} == {0o600}
    assert folder.facts(folder.contents()[0])["id"] == IDS[0]
    assert folder.clear() == 3
    assert ids(folder) == []


def test_a_capture_is_found_by_the_begin_of_its_id(folder: CaptureFolder) -> None:
    assert folder.read("bbbb").id == IDS[2]
    assert folder.read("aaaa1").id == IDS[0]


@pytest.mark.parametrize(
    "wanted",
    [
        *("", "a", "aaaa", "cccc", "../x", "/etc/passwd", "..", "*", "aaaa1*"),
        *("AAAA1", "bbbb\n", "bbbb\x00", f"{IDS[2]}.capture.jsonl", "\u202ebbbb"),
    ],
)
def test_an_id_names_one_capture_or_nothing(folder: CaptureFolder, wanted: str) -> None:
    with pytest.raises(ConfigError):
        folder.read(wanted)


def test_what_is_older_than_a_day_is_deleted(folder: CaptureFolder) -> None:
    assert folder.tidy(1001.5 + KEPT_SECONDS) == 1
    assert ids(folder) == IDS[2:]


def test_captures_from_before_the_clock_was_set_back_are_deleted(
    folder: CaptureFolder,
) -> None:
    assert folder.tidy(1002 - KEPT_SECONDS) == 3
    assert folder.tidy(1000.5 - KEPT_SECONDS) == 1
    assert ids(folder) == IDS[:1]


def test_the_oldest_are_deleted_where_there_are_too_many_bytes(
    folder: CaptureFolder,
) -> None:
    size = folder.contents()[0].size
    assert folder.tidy(1003, most_bytes=2 * size) == 2
    assert ids(folder) == IDS[1:]


def test_nothing_of_others_is_read_or_deleted(
    folder: CaptureFolder, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(MAGIC + b'"id":"x"}')
    os.utime(outside, (1, 1))
    link = file_of(folder, "cccc000000000000")
    link.symlink_to(outside)
    file_of(folder, "dddd000000000000").write_bytes(b"another program's")
    (folder.path / "notes.txt").write_bytes(MAGIC)
    file_of(folder, "eeee000000000000").mkdir()
    file_of(folder, "ffff000000000000").hardlink_to(outside)
    os.mkfifo(file_of(folder, "abab000000000000"))
    foreign = set(folder.path.iterdir()) - {file_of(folder, name) for name in IDS}
    assert ids(folder) == IDS
    folder.sweep()
    folder.tidy(1e12)
    assert folder.clear() == 0
    assert set(folder.path.iterdir()) == foreign
    assert outside.read_bytes() == MAGIC + b'"id":"x"}'


def test_a_folder_that_is_a_link_is_left_alone(
    folder: CaptureFolder, tmp_path: Path
) -> None:
    linked = CaptureFolder(tmp_path / "link")
    linked.path.symlink_to(folder.path)
    assert linked.contents() == []
    assert linked.clear() == 0
    with pytest.raises(PermissionError):
        linked.write(Capture({"id": IDS[0]}, ()))
    assert ids(folder) == IDS


def test_a_folder_that_others_can_enter_is_not_used(folder: CaptureFolder) -> None:
    folder.path.chmod(0o755)
    with pytest.raises(PermissionError):
        folder.write(Capture({"id": IDS[0]}, ()))


def test_a_killed_write_is_swept(folder: CaptureFolder) -> None:
    for name, content in (("ab_12xyz", MAGIC[:5]), ("ab_12xya", MAGIC + b"..")):
        (folder.path / f".{IDS[0]}.capture.jsonl.{name}").write_bytes(content)
    other = folder.path / f".{IDS[0]}.capture.jsonl.ab_12xyb"
    other.write_bytes(b"something else")
    folder.sweep()
    left = {path.name for path in folder.path.iterdir() if path.name.startswith(".")}
    assert left == {other.name}


CAPTURE = Capture(
    {"id": "0123456789abcdef", "endpoint": "/chat"},
    (
        Piece(0.0, Hop.FROM_CLIENT, head=Head("POST /chat", (("A", "b"),))),
        Piece(0.1, Hop.FROM_CLIENT, text="{}\n\u2028ü"),
        Piece(0.2, Hop.TO_UPSTREAM, 1, "one"),
        Piece(0.3, Hop.TO_UPSTREAM, 2, "two"),
        Piece(0.4, Hop.FROM_UPSTREAM, 2, left_out=7),
        Piece(0.5, Hop.TO_CLIENT, head=Head("200")),
    ),
)


def test_a_capture_survives_its_file() -> None:
    raw = encode_capture(CAPTURE)
    assert raw.startswith(MAGIC)
    assert raw.count(b"\n") == len(CAPTURE.pieces) + 1
    assert decode_capture(raw) == CAPTURE


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b'{"byok_capture":2}',
        b'{"byok_capture":1}\n{"at":0}',
        b'{"byok_capture":1}\n{"at":"x","hop":"to_client","text":""}',
        b'{"byok_capture":1}\n{"at":0,"hop":"elsewhere","text":""}',
        b'{"byok_capture":1}\n[]',
        b"\xff",
    ],
)
def test_a_damaged_file_is_an_error_with_a_sentence(raw: bytes) -> None:
    with pytest.raises(ByokError, match="cannot be read"):
        decode_capture(raw)
