"""On a full disk byok starts, chats, keeps what it has, and says what it cannot do."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.disk import fill, mounted
from tests.fakes.patience import until
from tests.fakes.program import configure, serving
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
