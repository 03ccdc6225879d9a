"""Packages, ripgrep and parsers."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.doctor import program
from byok.doctor.program import (
    PACKAGES,
    check_parsers,
    check_ripgrep,
    check_versions,
    versions,
)
from byok.doctor.results import CheckState
from byok.index.parse.worker_pool import WorkersUnavailable
from byok.index.types import ParseJob, ParseOutcome
from tests.fakes.doctors import surroundings


async def test_versions_name_all_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(versions().values())
    async with surroundings() as around:
        assert (await check_versions(around, "")).state is CheckState.OK
        monkeypatch.setattr(program, "PACKAGES", (*PACKAGES, "no-such-package"))
        result = await check_versions(around, "")
    assert result.state is CheckState.FAILURE
    assert "no-such-package" in result.found


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec cat", "does not find a word"),
        ("exit 2", "(exit 2)"),
        ("exec sleep 60", "does not answer"),
        (None, "cannot be started"),
    ],
)
async def test_a_ripgrep_that_does_not_work_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, said: str
) -> None:
    monkeypatch.setattr(program, "_SECONDS", 0.5)
    fake = tmp_path / "rg"
    fake.write_text(f"#!/bin/sh\n{script}\n" if script else "#!/no/such/shell\n")
    fake.chmod(0o700)
    async with surroundings(environ={"PATH": str(tmp_path)}) as around:
        result = await check_ripgrep(around, "")
    assert result.state is CheckState.FAILURE
    assert said in result.found
    assert "Install ripgrep" in result.cure


@pytest.mark.skipif(sys.platform == "win32", reason="links and shells of POSIX")
async def test_a_ripgrep_that_the_service_cannot_start_is_named(tmp_path: Path) -> None:
    snap = tmp_path / "usr" / "snap"
    snap.parent.mkdir()
    snap.write_text("""#!/bin/sh\necho '{"type":"match"}'\n""")
    snap.chmod(0o700)
    (tmp_path / "rg").symlink_to(snap)
    async with surroundings(environ={"PATH": str(tmp_path)}) as around:
        result = await check_ripgrep(around, "")
    assert result.state is CheckState.WARNING
    assert "is a snap" in result.found
    assert "apt install ripgrep" in result.cure


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
async def test_ripgrep_is_found_and_tried() -> None:
    async with surroundings() as around:
        result = await check_ripgrep(around, "")
    assert (result.state, result.found) == (CheckState.OK, shutil.which("rg"))


async def test_ripgrep_of_the_working_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "rg"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    async with surroundings(environ={"PATH": f".:{tmp_path}"}) as around:
        result = await check_ripgrep(around, "")
    assert result.state is CheckState.WARNING
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
async def test_parsers_are_tried() -> None:
    async with surroundings() as around:
        result = await check_parsers(around, "")
    assert (result.state, "3 languages" in result.found) == (CheckState.OK, True)


@pytest.mark.parametrize("starts", [True, False])
async def test_parsers_that_do_not_work_are_named(
    monkeypatch: pytest.MonkeyPatch, *, starts: bool
) -> None:
    class Crashing:
        def __init__(self, size: int, limit: float) -> None:
            self.closed = False

        def prepare(self, jobs: list[ParseJob]) -> Iterator[ParseOutcome]:
            if not starts:
                raise WorkersUnavailable("no process for parsing can be started")
            return (ParseOutcome(job, None, plain=True) for job in jobs)

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(program, "Pool", Crashing)
    async with surroundings() as around:
        result = await check_parsers(around, "")
    assert result.state is CheckState.FAILURE
    assert ("sample.go" in result.found) is starts
    assert result.cure
