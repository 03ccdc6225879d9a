"""The thread that writes captures never fails anybody."""

import os
from pathlib import Path

import pytest

from byok.core.record import Hop
from byok.core.redact import MARK, Redactor
from byok.features.capture.capture import Capture
from byok.features.capture.folder import KEPT_SECONDS, CaptureFolder
from byok.features.capture.recorder import CaptureWriter, RawCapture
from byok.features.capture.scrub import RawPiece
from tests.fakes.disk import fill, mounted
from tests.fakes.patience import PATIENCE

KEY = "canary/key+0123456789"
PIECES = [RawPiece(0.0, Hop.FROM_CLIENT, 0, f"It is {KEY}.".encode())]


def raw(number: int, **facts: str) -> RawCapture:
    return RawCapture({"id": f"{number:016x}", **facts}, PIECES, 10)


def writer_of(folder: Path, most_bytes: int = 10**6) -> CaptureWriter:
    redactor = Redactor()
    redactor.add(KEY)
    return CaptureWriter(CaptureFolder(folder), redactor, most_bytes=most_bytes)


def test_writer_stores_what_it_is_given_without_secrets(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "capture")
    writer.add(raw(1, model=f"m {KEY}"))
    writer.close()
    [file] = (tmp_path / "capture").iterdir()
    assert KEY not in file.read_text()
    capture = writer.folder.read("00000000")
    assert capture.text(Hop.FROM_CLIENT) == f"It is {MARK}."
    assert capture.facts["model"] == f"m {MARK}"
    assert (writer.failed, writer.refused, writer.released) == (0, 0, 10)


def test_writer_deletes_what_is_old_when_it_starts(tmp_path: Path) -> None:
    folder = CaptureFolder(tmp_path / "capture")
    folder.write(Capture({"id": "a" * 16}, ()))
    folder.write(Capture({"id": "b" * 16}, ()))
    file = folder.path / f"{'a' * 16}.capture.jsonl"
    long_ago = file.stat().st_mtime - KEPT_SECONDS - 60
    os.utime(file, (long_ago, long_ago))
    writer = CaptureWriter(folder, Redactor())
    writer.start()
    writer.close()
    assert [stored.id for stored in folder.contents()] == ["b" * 16]


def test_a_folder_that_cannot_be_used_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "capture").write_text("a file")
    writer = writer_of(tmp_path / "capture")
    for number in range(5):
        writer.add(raw(number))
    assert writer.wait(PATIENCE)
    writer.close()
    assert writer.failed == 5
    assert len(caplog.records) == 1
    assert (tmp_path / "capture").read_text() == "a file"


def test_a_full_disk_loses_captures_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mounted(tmp_path / "small", "1m") as disk:
        writer = writer_of(disk / "capture")
        writer.add(raw(1))
        assert writer.wait(PATIENCE)
        fill(disk / "filler")
        for number in range(2, 5):
            writer.add(raw(number))
        assert writer.wait(PATIENCE)
        (disk / "filler").unlink()
        writer.add(raw(5))
        assert writer.wait(PATIENCE)
        writer.close()
        kept = [stored.id for stored in writer.folder.contents()]
        assert {kept[0], kept[-1]} == {f"{1:016x}", f"{5:016x}"}
        assert len([r for r in caplog.records if "captures" in r.message]) <= 1


def test_a_request_that_cannot_be_scrubbed_stops_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = writer_of(tmp_path / "capture")
    odd = RawPiece(0.0, Hop.FROM_CLIENT, 0, object())  # type: ignore[arg-type]
    writer.add(raw(1)._replace(pieces=[odd]))
    writer.add(raw(2))
    assert writer.wait(PATIENCE)
    writer.close()
    assert [stored.id for stored in writer.folder.contents()] == [f"{2:016x}"]
    assert (writer.failed, writer.released) == (1, 20)
    assert "Traceback" in caplog.text  # it is a bug, and can be found
