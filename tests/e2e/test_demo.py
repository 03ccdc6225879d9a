"""The demo shows requests on a page of its own, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from byok.core.error_table import error_rows
from tests.fakes.patience import PATIENCE
from tests.fakes.program import run_byok


@pytest.mark.parametrize(
    ("how", "is_lost"),
    [
        (signal.SIGINT, False),
        (signal.SIGTERM, True),
        (getattr(signal, "SIGHUP", signal.SIGTERM), False),  # the terminal is closed
    ],
)
def test_the_demo_shows_its_requests_and_removes_itself(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    how: signal.Signals,
    is_lost: bool,
) -> None:
    byok = [sys.executable, "-P", "-m", "byok"]
    environ = {**os.environ, "TMPDIR": str(tmp_path), "BYOK_SERVER__PORT": "1"}
    environ["HOME"] = str(tmp_path_factory.mktemp("user"))
    environ["BYOK_HOME"] = "no-such-home"  # is not used, and would be refused
    editor = Path(environ["HOME"], "settings.json")
    editor.write_text('{"editor.fontSize": 14}\n', "utf-8")
    begun = time.time()
    remarks = Path(environ["HOME"], "remarks")
    with remarks.open("w") as err, subprocess.Popen(
        [*byok, "demo", "--link"], env=environ,
        stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=True,
    ) as demo:  # fmt: skip
        assert demo.stdout is not None
        told = [demo.stdout.readline()]
        assert len(remarks.read_text().splitlines()) >= 3  # of what was done until then
        told += [demo.stdout.readline() for _ in range(3)]  # the last: all is shown
        address = re.search(r"http://127\.0\.0\.1:\d+/", told[0])
        assert address is not None
        with urllib.request.urlopen(address[0] + "health", timeout=PATIENCE) as answer:
            assert json.load(answer) == {"status": "ok"}
        [folder] = tmp_path.iterdir()
        check_sample_editor(address[0], told[1].split()[1], folder)
        home = {**environ, "BYOK_HOME": str(folder / "home")}
        rows = list[dict[str, Any]]()
        while not any(one["attempts"] > 1 for one in rows):  # written a moment later
            rows = json.loads(run_byok("log", "--json", env=home).stdout)
        connect = ("connect", "vscode", "--write", "--yes", "--file", editor)
        assert run_byok(*connect, env=home).returncode == 0
        assert address[0].rstrip("/") in editor.read_text("utf-8")
        if is_lost:  # what it was cannot be given back, and is not thrown away
            editor.unlink()
        demo.send_signal(how)
    assert demo.returncode == 0
    if is_lost:
        [kept] = [path for path in tmp_path.rglob("*") if path.is_file()]
    else:
        assert not [*tmp_path.iterdir()]
        kept = editor
    assert kept.read_text("utf-8") == '{"editor.fontSize": 14}\n'
    check_samples(rows, begun)


def check_sample_editor(address: str, code: str, folder: Path) -> None:
    """Where no editor is installed, the page connects one of the demo's own."""

    def ask(name: str, body: dict[str, Any], token: str = "") -> Any:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {token}",
        }
        request = urllib.request.Request(
            f"{address}ui/api/{name}", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    token = ask("sign-in", {"code": code})["token"]
    ask("client-connect", {"client": "vscode", "write": True}, token)
    [row] = (
        one for one in ask("clients", {}, token)["clients"] if one["client"] == "vscode"
    )
    assert row["state"] == "connected"
    assert Path(row["file"]).is_relative_to(folder)


def check_samples(rows: list[dict[str, Any]], begun: float) -> None:
    """An hour has what people look for: costs, a cache, its loss, errors, retries."""
    assert all(one["cost"] is not None for one in rows)
    facts = ("conversation", "folder", "purpose", "client", "model")
    assert all(len({one[fact] for one in rows}) > 2 for fact in facts)
    listed = [one for one in rows if one["conversation"] == rows[0]["conversation"]]
    read = [one["cache_read_tokens"] > 0 for one in listed]
    assert read == [False, False, True, True, False, True]
    lost = read.index(False, read.index(True))
    assert listed[lost]["started"] - listed[lost - 1]["started"] > 300
    assert listed[lost]["cost"] > 5 * listed[lost - 1]["cost"]
    failed = [one for one in rows if one["outcome"] == "failed"]
    assert len(failed) > 1
    [error] = {one["error"] for one in failed}
    assert error_rows("en")[error].cures
    assert [one["attempts"] for one in rows if one["attempts"] > 1] == [2]
    assert 0 < begun - rows[0]["started"] < 3600
