"""byok report."""

import json
import zipfile
from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from byok.core.record import Hop
from byok.features.capture.capture import decode_capture
from tests.fakes.commands import Cli
from tests.fakes.daemon import ask_chat, daemon_thread
from tests.fakes.values import forms

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
