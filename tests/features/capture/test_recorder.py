"""Capturing is switched on for a while, and keeps to its limits."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import Paths
from byok.core.record import Head, Hop, RequestRecord
from byok.core.redact import MARK, Redactor
from byok.features.capture.capture import KEPT_SECONDS, Capture, CaptureFolder
from byok.features.capture.recorder import (
    LONGEST_SECONDS,
    CaptureLimits,
    CaptureRecorder,
    CaptureWriter,
    RawCapture,
)
from byok.features.capture.scrub import RawPiece
from tests.fakes.clock import Clock
from tests.fakes.disk import fill, mounted
from tests.fakes.feature_supplies import GivenSupplies, make_site
from tests.fakes.patience import PATIENCE

Make = Callable[..., CaptureRecorder]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Make:
    def make(**limits: int) -> CaptureRecorder:
        site = make_site(paths=Paths(tmp_path, tmp_path, tmp_path))
        return CaptureRecorder(site, CaptureLimits(**limits), clock=clock)

    return make


def play(
    recorder: CaptureRecorder, *pieces: bytes, number: int = 1, **facts: Any
) -> bool:
    """Let a request pass; tell whether it was tapped."""
    record = RequestRecord(f"{number:016x}", "POST", endpoint="/chat")
    record.client = str(facts.get("client", ""))
    tap = recorder.request_started(record)
    if tap is not None:
        tap.take_head(Hop.FROM_CLIENT, Head("POST /chat"))
        for piece in pieces:
            tap(Hop.TO_CLIENT, piece)
    record.trusted = bool(facts.get("trusted", True))
    record.endpoint = str(facts.get("endpoint", "/chat"))
    record.finish(200)
    recorder.request_finished(record)
    return tap is not None


def contents(recorder: CaptureRecorder, tmp_path: Path) -> list[Capture]:
    assert recorder.wait(PATIENCE)
    folder = CaptureFolder(tmp_path / "capture")
    return [folder.read(one.id) for one in folder.contents()]


def test_recorder_is_off_until_it_is_switched_on(
    make: Make, clock: Clock, tmp_path: Path
) -> None:
    recorder = make()
    assert not play(recorder, b"x")
    recorder.switch_on(60)
    assert recorder.describe()["on"]
    assert play(recorder, b"one", b"two")
    clock.now += 61
    assert not recorder.describe()["on"]
    assert not play(recorder, b"x", number=2)
    recorder.switch_on(1e9)
    assert recorder.seconds_left == LONGEST_SECONDS
    recorder.switch_off()
    assert not play(recorder, b"x", number=3)
    [capture] = contents(recorder, tmp_path)
    assert capture.text(Hop.TO_CLIENT) == "onetwo"
    assert capture.head(Hop.FROM_CLIENT) == Head("POST /chat")
    assert recorder.describe()["kept"] == 1
    recorder.close()


def test_recorder_that_is_off_opens_nothing(make: Make, tmp_path: Path) -> None:
    recorder = make()
    recorder.configure(GivenSupplies())
    play(recorder, b"x")
    recorder.close()
    assert not (tmp_path / "capture").exists()


@pytest.mark.parametrize(
    "facts", [{"trusted": False}, {"endpoint": "/byok/keys"}, {"endpoint": "/health"}]
)
def test_recorder_keeps_requests_of_clients_only(
    make: Make, tmp_path: Path, facts: dict[str, Any]
) -> None:
    recorder = make()
    recorder.switch_on()
    play(recorder, b"x", **facts)
    assert contents(recorder, tmp_path) == []
    assert recorder.has_room
    recorder.close()


def test_a_request_is_kept_up_to_its_limit(make: Make, tmp_path: Path) -> None:
    recorder = make(request=20_000)
    recorder.switch_on()
    play(recorder, b"a " * 5000, b"b" * 15_000, b"c")
    [capture] = contents(recorder, tmp_path)
    assert capture.text(Hop.TO_CLIENT).startswith("a a ")
    assert "c" not in capture.text(Hop.TO_CLIENT).removesuffix("[cut]")
    assert [p.left_out for p in capture.pieces if p.left_out] == [15_000]
    recorder.close()


@pytest.mark.parametrize(
    ("limits", "size", "kept"), [({"memory": 100}, 30, 9), ({}, 1, 51)]
)
def test_memory_and_pieces_are_limited(
    make: Make, tmp_path: Path, limits: dict[str, int], size: int, kept: int
) -> None:
    recorder = make(pieces=50, **limits)
    recorder.switch_on()
    play(recorder, *[b"x" * size] * 1000)
    [capture] = contents(recorder, tmp_path)
    assert 0 < len(capture.pieces) <= kept
    assert capture.pieces[-1].left_out
    assert recorder.has_room
    recorder.close()


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
