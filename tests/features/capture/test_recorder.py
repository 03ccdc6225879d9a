"""Capturing is switched on for a while, and keeps to its limits."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import Paths
from byok.core.record import Head, Hop, RequestRecord
from byok.core.redact import MARK
from byok.features.base import Supplies
from byok.features.capture.capture import KEPT_SECONDS, Capture, CaptureFolder
from byok.features.capture.recorder import (
    LONGEST_SECONDS,
    CaptureLimits,
    CaptureRecorder,
)
from tests.fakes.clock import Clock
from tests.fakes.disk import fill, mounted
from tests.fakes.feature_supplies import make_site
from tests.fakes.patience import PATIENCE

Make = Callable[..., CaptureRecorder]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Make:
    def make(
        folder: Path = tmp_path, *, secret: str = "", **limits: int
    ) -> CaptureRecorder:
        site = make_site(paths=Paths(folder, folder, folder))
        site.redactor.add(secret)
        return CaptureRecorder(site, CaptureLimits(**limits), clock=clock)

    return make


def play(
    recorder: CaptureRecorder, *pieces: bytes, number: int = 1, **facts: Any
) -> bool:
    """Let a request pass; tell whether it was tapped."""
    record = RequestRecord(f"{number:016x}", "POST", endpoint="/chat")
    record.model = str(facts.get("model", ""))
    tap = recorder.request_started(record)
    if tap is not None:
        tap(Hop.FROM_CLIENT, Head("POST /chat", facts.get("headers", ())))
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
    recorder.configure(Supplies())
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
    assert recorder.has_memory
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
    assert recorder.has_memory
    recorder.close()


KEY = "canary/key+0123456789"


def test_captures_are_stored_without_secrets(make: Make, tmp_path: Path) -> None:
    recorder = make(secret=KEY)
    recorder.switch_on()
    play(recorder, f"It is {KEY}.".encode(), model=f"m {KEY}")
    [capture] = contents(recorder, tmp_path)
    [file] = (tmp_path / "capture").iterdir()
    assert KEY not in file.read_text()
    assert capture.text(Hop.TO_CLIENT) == f"It is {MARK}."
    assert capture.facts["model"] == f"m {MARK}"
    assert recorder.describe()["lost"] == 0
    recorder.close()


def test_what_is_old_is_deleted_at_the_start(make: Make, tmp_path: Path) -> None:
    folder = CaptureFolder(tmp_path / "capture")
    folder.write(Capture({"id": "a" * 16}, ()))
    folder.write(Capture({"id": "b" * 16}, ()))
    file = folder.path / f"{'a' * 16}.capture.jsonl"
    long_ago = file.stat().st_mtime - KEPT_SECONDS - 60
    os.utime(file, (long_ago, long_ago))
    recorder = make()
    recorder.configure(Supplies())
    recorder.close()
    assert [stored.id for stored in folder.contents()] == ["b" * 16]


def test_a_folder_that_cannot_be_used_is_said_once(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "capture").write_text("a file")
    recorder = make()
    recorder.switch_on()
    for number in range(5):
        play(recorder, b"x", number=number)
    recorder.close()
    assert recorder.describe()["lost"] == 5
    assert recorder.has_memory
    assert len(caplog.records) == 1
    assert (tmp_path / "capture").read_text() == "a file"


def test_a_full_disk_loses_captures_and_nothing_else(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mounted(tmp_path / "small", "1m") as disk:
        recorder = make(disk)
        recorder.switch_on()
        play(recorder, b"x", number=1)
        assert recorder.wait(PATIENCE)
        fill(disk / "filler")
        for number in range(2, 5):
            play(recorder, b"x", number=number)
        assert recorder.wait(PATIENCE)
        (disk / "filler").unlink()
        play(recorder, b"x", number=5)
        kept = [capture.id for capture in contents(recorder, disk)]
        recorder.close()
        assert {kept[0], kept[-1]} == {f"{1:016x}", f"{5:016x}"}
        assert len([r for r in caplog.records if "captures" in r.message]) <= 1


def test_a_request_that_cannot_be_scrubbed_stops_no_other(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = make(memory=100)
    recorder.switch_on()
    odd: Any = (["x"], "y")
    play(recorder, b"x", headers=(odd,))
    play(recorder, b"x" * 50, number=2)
    [capture] = contents(recorder, tmp_path)
    assert capture.id == f"{2:016x}"
    assert recorder.describe()["lost"] == 1
    assert recorder.has_memory
    assert "Traceback" in caplog.text  # it is a bug, and can be found
    recorder.close()
