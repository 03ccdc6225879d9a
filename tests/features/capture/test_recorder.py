"""Capturing is switched on for a while, and keeps to its limits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import Paths
from byok.core.record import Head, Hop, RequestRecord
from byok.features.capture.capture import Capture
from byok.features.capture.folder import CaptureFolder
from byok.features.capture.recorder import (
    LONGEST_SECONDS,
    CaptureLimits,
    CaptureRecorder,
)
from tests.fakes.clock import Clock
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


def test_memory_and_pieces_are_limited(make: Make, tmp_path: Path) -> None:
    recorder = make(memory=100, pieces=50)
    recorder.switch_on()
    play(recorder, *[b"x" * 30] * 1000)
    [capture] = contents(recorder, tmp_path)
    assert len(capture.pieces) < 10
    assert recorder.has_room
    recorder.close()


def test_many_small_pieces_are_limited(make: Make, tmp_path: Path) -> None:
    recorder = make(pieces=50)
    recorder.switch_on()
    play(recorder, *[b"x"] * 1000)
    [capture] = contents(recorder, tmp_path)
    assert len(capture.pieces) == 51
    assert capture.is_cut
    recorder.close()
