"""The demo shows requests on a page of its own, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.fakes.patience import PATIENCE


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_shows_its_requests_and_removes_itself(
    tmp_path: Path, how: signal.Signals
) -> None:
    byok = [sys.executable, "-P", "-m", "byok"]
    environ = {**os.environ, "TMPDIR": str(tmp_path), "BYOK_SERVER__PORT": "1"}
    with subprocess.Popen(
        [*byok, "demo", "--link"],
        env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as demo:  # fmt: skip
        assert demo.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/", demo.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0] + "health", timeout=PATIENCE) as answer:
            assert json.load(answer) == {"status": "ok"}
        demo.stdout.readline()  # the code
        demo.stdout.readline()  # all is shown
        [folder] = tmp_path.iterdir()
        asked = list[str]()
        while len(asked) < 4:  # the journal is written a moment later
            log = subprocess.run(
                [*byok, "log", "--json"],
                env={**environ, "BYOK_HOME": str(folder / "home")},
                capture_output=True, check=True, text=True,
            )  # fmt: skip
            asked = [one["endpoint"] for one in json.loads(log.stdout)]
        demo.send_signal(how)
    assert demo.returncode == 0
    assert not [*tmp_path.iterdir()]
    assert asked == ["/chat-stream"] * 4
