"""byok replay."""

import json

import pytest

from byok.features.capture.capture import Capture
from byok.features.capture.folder import CaptureFolder
from byok.platform.paths import find_paths
from byok.record import Hop
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import ask_chat, daemon_thread


@pytest.fixture
def captured(cli: Cli) -> str:
    """The id of a chat with the demo."""
    with daemon_thread() as daemon:
        cli("capture", "on")
        found = ask_chat(daemon, "Hello.")
        cli("capture", "off")
    return found


def change(captured: str, old: str, new: str) -> None:
    """Change what the client got."""
    folder = CaptureFolder(find_paths().captures)
    capture = folder.read(captured)
    pieces = tuple(
        piece._replace(text=piece.text.replace(old, new))
        if piece.hop is Hop.TO_CLIENT
        else piece
        for piece in capture.pieces
    )
    folder.write(Capture(capture.facts, pieces))


def test_replay_of_what_is_the_same_says_so(cli: Cli, captured: str) -> None:
    done = cli("replay", captured[:8])
    assert (done.code, done.out) == (0, "The client would get the same as it did.\n")


def test_replay_shows_what_differs(cli: Cli, captured: str) -> None:
    change(captured, "demo", "\x1b[31mdemo")
    done = cli("replay", captured)
    assert done.code == 1
    assert "text differs:" in done.out
    assert "\x1b" not in done.out
    [found] = json.loads(cli("replay", captured, "--json").out)["differences"]
    assert found["what"] == "text"


def test_replay_asks_before_it_sends(cli: Cli, captured: str) -> None:
    done = cli("replay", captured, "--ask")
    assert done.code == 78
    assert "--yes" in done.err


def test_replay_asks_the_running_daemon(cli: Cli, captured: str) -> None:
    assert cli("replay", captured, "--ask", "--yes").code == 1  # none is running
    with daemon_thread():
        done = cli("replay", captured, "--ask", "--yes")
    assert done.code == 0
    assert "same text, calls and counts" in done.out
    assert "first byte" in done.out


@pytest.mark.parametrize("wanted", ["../x", "ffff", ""])
def test_replay_takes_only_ids(cli: Cli, wanted: str) -> None:
    assert cli("replay", wanted).code == 78
