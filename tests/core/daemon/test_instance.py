"""One daemon at a time: the lock, what it says, and how a crash frees it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core.daemon.instance import find_instance, only_instance, write_record
from byok.core.errors import CannotStart
from byok.core.platform.paths import Paths, find_paths
from tests.fakes.patience import PATIENCE

HOLDER = """
import sys
from byok.core.platform.paths import find_paths
from byok.core.daemon.instance import only_instance, write_record

paths = find_paths()
with only_instance(paths):
    write_record(paths, 4711, "abc")
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def paths(clean_environment: Path) -> Paths:
    """The paths of the test's own home."""
    return find_paths({"BYOK_HOME": str(clean_environment)})


@pytest.fixture
def holder(paths: Paths) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_instance_lock_error_describes_the_running_daemon(
    paths: Paths, holder: subprocess.Popen[str]
) -> None:
    found = find_instance(paths)
    assert found is not None
    assert (found.pid, found.port) == (holder.pid, 4711)
    with pytest.raises(CannotStart) as caught, only_instance(paths):
        pass
    assert f"pid {holder.pid}, port 4711" in str(caught.value)
    assert caught.value.code == "already_running"
    assert "byok stop" in caught.value.hint
    assert find_instance(paths) == found


def test_instance_lock_is_freed_by_a_killed_daemon(
    paths: Paths, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait(PATIENCE)
    assert find_instance(paths) is None
    with only_instance(paths):
        own = write_record(paths, 1, "abc")
        assert own.pid == os.getpid()


def test_instance_facts_are_removed_when_the_daemon_ends(
    paths: Paths, holder: subprocess.Popen[str]
) -> None:
    assert paths.daemon.stat().st_mode & 0o777 == 0o600
    assert holder.stdin is not None
    holder.stdin.close()
    holder.wait(PATIENCE)
    assert find_instance(paths) is None
    assert not paths.daemon.exists()


def test_instance_facts_that_are_damaged_only_shorten_the_message(
    paths: Paths, holder: subprocess.Popen[str]
) -> None:
    for facts in (b"", b"{", b"[]", b'{"pid": 1}', b"\xff"):
        paths.daemon.write_bytes(facts)
        assert find_instance(paths) is None
        with (
            pytest.raises(CannotStart, match=r"already running\."),
            only_instance(paths),
        ):
            pass
