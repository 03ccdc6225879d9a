"""On a full disk, or with little memory, byok chats and says what it cannot do."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.disk import fill, mounted
from tests.fakes.patience import START, until
from tests.fakes.program import LIMITED, ROOT, configure, serving
from tests.fakes.project import make_project
from tests.fakes.upstream import FakeUpstream, answer

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small", "16m") as folder:
        yield folder


@pytest.mark.case("B113")
@pytest.mark.case("F28")
async def test_a_daemon_that_finds_the_disk_full_starts_and_chats(
    home: Path, tmp_path: Path, fake: FakeUpstream
) -> None:
    filler = home / "filler"
    one, two = make_project(tmp_path / "one"), make_project(tmp_path / "two")
    configure(home, fake.url)
    async with serving(home) as program:
        assert (await program.post("/byok/index/add", root=str(one))).status == 200
        await program.until_complete(1)
        await program.ended(signal.SIGTERM)
    fill(filler)
    async with serving(home) as program:
        fake.play(*[answer("Yes.")] * 2)
        await program.check_well()
        refused = await program.post("/byok/index/add", root=str(two))
        assert (refused.status, refused.json["error"]["code"]) == (507, "storage_full")
        filler.unlink()
        added = await program.post("/byok/index/add", root=str(two))
        assert added.status == 200, added.body
        await program.until_complete(2)
        await program.check_well()


@pytest.mark.case("B113")
@pytest.mark.case("F28")
async def test_what_cannot_be_kept_on_a_full_disk_is_refused_and_works_later(
    home: Path, tmp_path: Path, fake: FakeUpstream
) -> None:
    filler = home / "filler"
    configure(home, fake.url)
    upload = {"blob_name": "", "path": "a.py", "content": "x"}
    names = {"checkpoint_id": None, "added_blobs": ["0" * 64], "deleted_blobs": []}
    async with serving(home) as program:
        # The disk is smaller than the floor that checkpoints without end leave it.
        refused = await program.post("/checkpoint-blobs", blobs=names)
        assert (refused.status, refused.json["error"]["code"]) == (507, "storage_full")
        assert (await program.post("/byok/index/status")).status == 200
        fill(filler)
        first = make_project(tmp_path / "first")
        refused = await program.post("/byok/index/add", root=str(first))
        assert refused.status == 507, refused.body
        filler.unlink()
        assert (await program.post("/byok/index/add", root=str(first))).status == 200
        await program.until_complete(1)
        fill(filler)
        for number in range(100):  # pages that were written before take some more
            root = make_project(tmp_path / f"project{number}")
            answered = await program.post("/byok/index/add", root=str(root))
            if answered.status != 200:
                break
        assert answered.status == 507, answered.body
        assert (await program.post("/batch-upload", blobs=[upload])).status == 507
        for target in ("/byok/index/remove", "/byok/index/rebuild"):
            answered = await program.post(target, root=str(first))
            assert answered.status in (200, 503, 507), answered.body
        fake.play(answer("Yes."))
        await program.check_well()


@pytest.mark.case("B113")
async def test_commands_find_a_daemon_that_began_on_a_full_disk_once_there_is_room(
    home: Path, fake: FakeUpstream
) -> None:
    filler, record = home / "filler", home / "state" / "daemon.json"
    configure(home, fake.url)
    async with serving(home) as program:
        assert record.exists()
        await program.ended(signal.SIGTERM)
    fill(filler)
    async with serving(home):
        assert not record.exists()
        filler.unlink()
        await until(record.exists)


# Little memory.

linux = pytest.mark.skipif(sys.platform != "linux", reason="only there it is counted")
_SMALL, _LARGER = 400 * 2**20, 1000 * 2**20


@linux
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


@linux
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
