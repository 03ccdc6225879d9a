"""A daemon that is killed leaves nothing behind that the next one stumbles over."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.fakes.patience import until
from tests.fakes.program import HELD, configure, serving, streams
from tests.fakes.upstream import FakeUpstream, answer

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def files(home: Path) -> set[str]:
    """All files but the logs."""
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and path.suffix != ".log"
    }


async def test_crash_with_open_streams_leaves_a_clean_next_start(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url, "[journal]\nkeep_days = 0\n")  # written a moment later
    fake.play(HELD)
    async with serving(home) as program:
        tasks = await streams(program, fake)
        before = {name for name in files(home) if "/." not in name}
        before.add("state/models.json")  # which either daemon may be the one to finish
        code, _, _ = await program.ended(signal.SIGKILL)
        await asyncio.gather(*tasks, return_exceptions=True)
    assert code == -signal.SIGKILL
    await until(lambda: not fake.open)  # it notices that nobody listens any more
    fake.play(answer("Hi."))
    async with serving(home) as program:
        await program.check_well()
        await until(lambda: files(home) == before)
