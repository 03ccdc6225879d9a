"""What every test starts from: a home of its own, no keyring, loopback only."""

import gc
import io
import itertools
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import HealthCheck, settings

from tests import folding
from tests.fakes.commands import Cli, Done
from tests.fakes.upstream import FakeUpstream

if TYPE_CHECKING:
    from tests.fakes.daemon import Editor

# How many examples a property is tried with; a test's own number counts if it is less.
_EXAMPLES = {"byok": 20, "quick": 10, "thorough": 400}
for _name, _most in _EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_most,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.function_scoped_fixture,
        ],
    )
settings.load_profile("byok")
_NUMBERS = itertools.count()
_REAL_CONNECT = socket.socket.connect


def shared_folder() -> Path:
    """Return the folder with the recorded streams, whether it exists or not."""
    beside = Path(__file__).parents[2] / "shared"
    return Path(os.environ.get("BYOK_SHARED", str(beside)))


def zone_without_midnight(hour: int) -> str:
    """Return a time zone where no day ends while the tests run; `hour` is that of UTC.

    Sums of a day begin anew at midnight, and the page has a clock that is not a test's.
    """
    return "UTC" if 2 <= hour < 20 else "TST+6"


def pytest_configure(config: pytest.Config) -> None:
    """Let the programs that tests start be interrupted, and `byok` be found, by day.

    A background job of a shell ignores SIGINT, and so would all that it starts. Without
    the program on the search path, messages would show commands with this clone's path.
    """
    programs = str(Path(sys.executable).parent)
    if hasattr(time, "tzset") and not hasattr(config, "workerinput"):
        os.environ["TZ"] = zone_without_midnight(datetime.now(UTC).hour)
        time.tzset()
    os.environ["PATH"] = os.pathsep.join((programs, os.environ.get("PATH", os.defpath)))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("quick"):
        settings.load_profile("quick")


# Here every test is slow: it starts programs, serves as one would, or has an index.
_SLOW_ROOMS = ("cli", "e2e", "search", "server", "tools", "ui")
_SLOW = tuple(f"tests/{room}/" for room in _SLOW_ROOMS)
# The longest tests: one that began last would leave the other cores without work.
_LONG = ("tests/test_contributing.py", "tests/e2e/test_readme.py")
# What a test of a quick run may compute before it is named at the end, in seconds.
_QUICK_SECONDS = 1.0
_SETTINGS = "_hypothesis_internal_use_settings"  # there is no public name for it


def pytest_addoption(
    parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager
) -> None:
    """Let a run write the golden files anew, or leave out what is slow."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden")
    parser.addoption("--quick", action="store_true", help="leave out slow tests")
    pluginmanager.register(folding)


def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> Literal[True] | None:
    """Do not even import what a quick run leaves out."""
    if not config.getoption("quick"):
        return None
    slow = (config.rootpath / folder for folder in _SLOW)
    return True if collection_path in slow else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark what is slow, leave it out of a quick run, and begin with what is long."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))
    for item in items:
        if item.nodeid.startswith(_SLOW):
            item.add_marker(pytest.mark.slow)
        _limit_examples(item)
    if config.getoption("quick"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def _limit_examples(item: pytest.Item) -> None:
    """Limit what Hypothesis tries; a test's own number would win over a profile's."""
    test = getattr(item, "obj", None)
    own = getattr(test, _SETTINGS, None)
    most = settings().max_examples
    if isinstance(own, settings) and own.max_examples > most:
        setattr(test, _SETTINGS, settings(own, max_examples=most))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector the walk over thousands of collected tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Note what the test costs this process and the programs it waited for."""
    before = _cpu_seconds()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu", _cpu_seconds() - before))


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the tests that are too heavy for a quick run."""
    if not config.getoption("quick"):
        return
    for report in terminalreporter.getreports("passed"):
        cpu = dict(report.user_properties).get("cpu", 0.0)
        if report.when == "call" and cpu > _QUICK_SECONDS:
            terminalreporter.write_line(
                f"{cpu:.1f} s of CPU, not marked slow: {report.nodeid}"
            )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The recorded streams and example requests; skips where there are none."""
    folder = shared_folder()
    if not (folder / "streams" / "manifest.jsonl").exists():
        pytest.skip("no recorded streams: set BYOK_SHARED to the folder that has them")
    return folder


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the homes of tests that need no other folder."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture
def before_row(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Give each row of a folded case an empty home."""
    return lambda: _choose_home(f"{homes}/{next(_NUMBERS)}-", monkeypatch)


def _choose_home(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYOK_HOME", f"{own}home")
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{own}settings")


@pytest.fixture(autouse=True)
def clean_environment(
    homes: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """Give byok an empty home and no key of the machine; forbid the outside world.

    The home is in the test's own folder; a test that asked for none gets none made.
    """
    if "tmp_path" in request.fixturenames:
        own = f"{request.getfixturevalue('tmp_path')}/"
    else:
        own = f"{homes}/{next(_NUMBERS)}-"
    for name in list(os.environ):
        ours = name.startswith("BYOK_") and name != "BYOK_SHARED"
        if ours or name.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(name)
    _choose_home(own, monkeypatch)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")  # messages are in English
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    if "real_keyring" not in request.keywords:
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setattr(socket.socket, "connect", _loopback_only)
    umask = os.umask(0o022)  # byok's commands leave one that hides a wrong mode
    yield Path(f"{own}home")
    os.umask(umask)


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


@pytest.fixture
async def editor(fake: FakeUpstream) -> AsyncIterator["Editor"]:
    """A client of a daemon whose only upstream is `fake`; rows of a table share it."""
    from tests.fakes.daemon import running, settings_for  # imports the whole server

    async with running(settings_for(fake.url)) as started:
        yield started


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    """Run byok with these arguments, and standard input that is no terminal."""
    from byok.cli import main  # with all commands: only for those who need them

    monkeypatch.setenv("COLUMNS", "100")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*arguments: object, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "argv", ["byok", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            with pytest.raises(SystemExit) as caught:
                main()
        finally:
            gc.enable()  # only the daemon does so itself
        out, err = capsys.readouterr()
        code = caught.value.code
        assert isinstance(code, int)
        return Done(code, out, err)

    yield run
    for handler in root.handlers:  # those of `byok serve`
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
