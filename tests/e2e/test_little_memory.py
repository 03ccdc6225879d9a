"""Under a limit on its memory byok says so plainly, and goes on where it can."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.patience import START
from tests.fakes.program import LIMITED, ROOT, serving
from tests.fakes.project import make_project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only there it is counted"),
]
_SMALL, _LARGER = 400 * 2**20, 1000 * 2**20


@pytest.mark.case("F40")
@pytest.mark.parametrize(
    ("limit", "status"), [(_SMALL, 503), (_LARGER, 200)], ids=["small", "larger"]
)
async def test_a_daemon_with_little_memory_chats_and_says_what_it_cannot_do(
    limit: int, status: int, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project")
    arguments = ("--upstream", "demo", "--workspace", str(project))
    limits = f"RLIMIT_AS={limit}"
    async with serving(tmp_path / "home", *arguments, limits=limits) as program:
        await program.check_well()
        asked = {"information_request": "where is it?"}
        answer = await program.post("/agents/codebase-retrieval", **asked)
        assert answer.status == status
        if status == 503:
            assert answer.json["error"]["code"] == "no_memory"
            assert b"memory" in program.log_file.read_bytes()
        await program.check_well()


@pytest.mark.case("F40")
@pytest.mark.parametrize("command", [["search", "hello"], ["index", "add", "."]])
def test_a_command_with_little_memory_says_so(
    command: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c", LIMITED, f"RLIMIT_AS={_SMALL}"),
            *("-m", "byok", *command),
        ],
        cwd=make_project(tmp_path / "project"),
        env={
            **os.environ,
            "BYOK_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=START,
        check=False,
    )
    assert done.returncode == 71, done.stderr
    assert "no_memory" in done.stderr
    assert "Traceback" not in done.stderr
