"""byok capture."""

import json
import zipfile
from pathlib import Path

import pytest

from byok.cli.capture import parse_time
from byok.core.daemon.token import read_token
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.core.record import Hop
from byok.features.capture.capture import decode_capture
from tests.fakes.commands import Cli
from tests.fakes.daemon import ask_chat, daemon_thread
from tests.fakes.values import forms

SECRET = "sk-0123456789abcdefghijklmnop"


def test_capture_keeps_requests_while_it_is_on(cli: Cli) -> None:
    with daemon_thread() as daemon:
        ask_chat(daemon, "before")
        on = cli("capture", "on", "--for", "2m")
        assert on.code == 0
        assert "for 2m" in on.out
        assert "Your code, your words" in on.err
        first = ask_chat(daemon, f"my key is {SECRET}")
        assert cli("capture", "status", "--json").out.count('"on": true') == 1
        off = cli("capture", "off")
        assert off.out.startswith("Capturing is off. 1 request captured")
        ask_chat(daemon, "after")
    listed = json.loads(cli("capture", "list", "--json").out)
    assert [(row["id"], row["endpoint"]) for row in listed] == [(first, "/chat-stream")]
    assert first in cli("capture", "list").out
    shown = cli("capture", "show", first[:6], "--full").out
    assert "my key is [redacted]" in shown
    assert SECRET not in shown
    assert "hidden-value" not in shown
    pieces = json.loads(cli("capture", "show", first, "--json").out)["pieces"]
    assert {piece["hop"] for piece in pieces} >= {"from_client", "to_client"}
    assert cli("capture", "clear").code == 78
    assert cli("capture", "clear", "--yes").out == "Deleted 1 capture.\n"
    assert "no captures" in cli("capture", "list").err


@pytest.mark.parametrize("command", [["on"], ["status"]])
def test_capture_without_a_daemon_says_so(cli: Cli, command: list[str]) -> None:
    done = cli("capture", *command)
    assert (done.code, done.out, "not running" in done.err) == (3, "", True)


@pytest.mark.parametrize("wanted", ["../../etc/passwd", "\u202e", "a/b"])
def test_capture_show_takes_only_ids(cli: Cli, wanted: str) -> None:
    done = cli("capture", "show", wanted)
    assert done.code == 78
    assert "byok capture list" in done.err


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("1d", 86_400)])
def test_capture_times(text: str, seconds: int) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "2d", "-1m", "m", "1w"])
def test_capture_times_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_time(text)


PLANTED = "canary/key+0123456789-ABC_def"
SHAPED = "sk-" + "oWn1" * 8
WORDS = "The words of a user about Project Heron"


def read(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("with_content", [False, True])
def test_report_holds_no_secret_and_no_words_but_if_wanted(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_content: bool
) -> None:
    monkeypatch.setenv("BYOK_KEY_FAKE", PLANTED)
    home = str(Path.home())
    file = tmp_path / "r.zip"
    options = ["--with-content"] if with_content else []
    spelled = b" ".join(sorted(forms(PLANTED))).decode()
    with daemon_thread() as daemon:
        cli("capture", "on")
        said = f"{WORDS}: {SHAPED} {spelled} {home}/x"
        captured = ask_chat(daemon, said)
        cli("capture", "off")
        done = cli("report", captured[:10], "--out", file, *options)
        token = read_token(find_paths().token)
    assert done.code == 0
    assert "Look through all of it" in done.err
    files = read(file)
    for name in files:
        assert name in done.out
    assert {"README.txt", "capture.jsonl", "model.json", "doctor.json"} <= {*files}
    assert json.loads(files["model.json"])["id"] == "byok:demo:echo"
    everything = b"\n".join(files.values())
    for secret in (PLANTED, SHAPED, token):
        assert [form for form in forms(secret) if form in everything] == []
    assert (WORDS.encode() in everything) is with_content
    capture = decode_capture(files["capture.jsonl"])
    assert len(capture.text(Hop.FROM_CLIENT)) > len(WORDS)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("wanted", ["../x", ""])
def test_report_takes_only_ids(cli: Cli, wanted: str) -> None:
    assert cli("report", wanted).code == 78
