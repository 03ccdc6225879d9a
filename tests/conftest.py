"""What every test starts from: a home of its own, no keyring, loopback only."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.fakes.upstream import FakeUpstream

settings.register_profile(
    "byok",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("byok")

_REAL_CONNECT = socket.socket.connect


def shared_folder() -> Path:
    """Return the folder with the recorded streams, whether it exists or not."""
    beside = Path(__file__).parents[2] / "shared"
    return Path(os.environ.get("BYOK_SHARED", str(beside)))


def pytest_configure() -> None:
    """Let the programs that tests start be interrupted.

    A background job of a shell ignores SIGINT, and so would all that it starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Here every test is slow: it starts programs, or serves as if it were one.
_SLOW = ("cli", "e2e", "mcp")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what a quick run leaves out."""
    tests = Path(__file__).parent
    for item in items:
        if item.path.relative_to(tests).parts[0] in _SLOW:
            item.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run write the golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The recorded streams and example requests; skips where there are none."""
    folder = shared_folder()
    if not (folder / "streams" / "manifest.jsonl").exists():
        pytest.skip("no recorded streams: set BYOK_SHARED to the folder that has them")
    return folder


@pytest.fixture(autouse=True)
def clean_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """Give byok an empty home and no key of the machine; forbid the outside world."""
    for name in list(os.environ):
        own = name.startswith("BYOK_") and name != "BYOK_SHARED"
        if own or name.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    monkeypatch.setenv("BYOK_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    if "real_keyring" not in request.keywords:
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setattr(socket.socket, "connect", _loopback_only)
    yield home


def _loopback_only(sock: socket.socket, address: Any) -> Any:
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        host = address[0]
        assert host in ("127.0.0.1", "::1", "localhost"), f"test connects to {host}"
    return _REAL_CONNECT(sock, address)


@pytest.fixture
async def fake() -> AsyncIterator[FakeUpstream]:
    """An upstream that plays a script."""
    async with FakeUpstream() as upstream:
        yield upstream
