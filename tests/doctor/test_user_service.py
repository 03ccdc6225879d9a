"""byok as a service: installed, in force, and the one that runs."""

import sys
from pathlib import Path

import pytest

from byok.daemon.instance import Instance
from byok.doctor import user_service
from byok.doctor.results import CheckState
from byok.doctor.user_service import check_service, judge_service
from byok.errors import CannotStart
from byok.platform.paths import Paths, find_paths
from byok.service.base import Command, CommandResult, ServiceSystem, mark_of
from byok.service.base import ServiceState as State
from byok.service.choose import make_launch
from byok.service.control import UserService
from byok.service.files import write_files
from byok.service.launchd import Launchd
from byok.service.systemd import Systemd
from byok.service.windows_tasks import WindowsTasks
from tests.fakes.doctors import surroundings

DAEMON = Instance(42, 8317, "a", 0.0)
OK, WARNING = CheckState.OK, CheckState.WARNING


@pytest.mark.parametrize(
    ("state", "daemon", "is_other", "expected", "said"),
    [
        (State(True, True, 42), DAEMON, False, OK, "it runs"),
        (State(True, False, 0, waits=True), None, False, OK, "first request"),
        (State(True, True), DAEMON, False, OK, "it runs"),  # a system without pids
        (State(True, True, 42), DAEMON, True, WARNING, "another Python"),
        (State(False, True, 42), DAEMON, False, WARNING, "at login"),
        (State(True, True, 7), DAEMON, False, WARNING, "by hand"),
        (State(True, False), DAEMON, False, WARNING, "by hand"),
        (State(True, False, 0, "failed (x)"), None, False, WARNING, "failed (x)"),
    ],
)
def test_what_the_state_of_a_service_means(
    state: State, daemon: Instance | None, is_other: bool, expected: str, said: str
) -> None:
    result = judge_service(state, daemon, is_other=is_other)
    assert result.state == expected
    assert said in result.found
    assert ("byok service" in result.cure) is (expected == WARNING)


def use(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    printed: str,
    system: ServiceSystem | None = None,
) -> None:
    """Let the machine have a system that prints this, and its files in a folder."""

    def run(command: Command) -> CommandResult:
        return CommandResult(0, printed)

    class Service(UserService):
        @classmethod
        def of_this_machine(cls, paths: Paths) -> "Service":
            return cls(system or Systemd(folder), paths, run)

    monkeypatch.setattr(user_service, "UserService", Service)


async def test_a_machine_without_the_service_is_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path, "")
    async with surroundings() as around:
        result = await check_service(around, "")
    assert (result.state, "byok service install" in result.found) == (OK, True)


@pytest.mark.parametrize("own", [True, False])
async def test_units_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, own: bool
) -> None:
    facts = "UnitFileState=enabled\nActiveState=active\nSubState=running\nMainPID=7\n"
    use(monkeypatch, tmp_path, facts)
    mark = mark_of(find_paths().state_dir if own else tmp_path)
    for unit in ("byok.socket", "byok.service"):
        (tmp_path / unit).write_text(f"# {mark}\nExecStart=/old/python -m byok serve\n")
    async with surroundings() as around:
        result = await check_service(around, "")
    if own:
        assert (result.state, "another Python" in result.found) == (WARNING, True)
    else:
        assert (result.state, "other folders" in result.found) == (
            CheckState.NOT_CHECKED,
            True,
        )


@pytest.mark.parametrize(
    "python", ["bin/python", '100%n/it\'s \\\\ & "one"/python.exe']
)
@pytest.mark.parametrize("kind", ["systemd", "launchd", "Windows"])
async def test_the_service_of_this_python_is_known_in_every_spelling(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / python))
    systems: dict[str, ServiceSystem] = {
        "systemd": Systemd(tmp_path),
        "launchd": Launchd(tmp_path, 1000),
        "Windows": WindowsTasks(tmp_path, "u"),
    }
    system, paths = systems[kind], find_paths()
    use(monkeypatch, tmp_path, "", system)
    write_files(system.render(make_launch(paths, 8317, tmp_path / "c.toml")))
    for place, is_other in ((sys.executable, False), ("/other/python", True)):
        monkeypatch.setattr(sys, "executable", place)
        async with surroundings() as around:
            result = await check_service(around, "")
        assert ("another Python" in result.found) is is_other


async def test_a_system_without_services_is_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Nothing(UserService):
        @classmethod
        def of_this_machine(cls, paths: Paths) -> "Nothing":
            raise CannotStart("byok knows no service manager of this system.")

    monkeypatch.setattr(user_service, "UserService", Nothing)
    async with surroundings() as around:
        assert (await check_service(around, "")).state is CheckState.NOT_CHECKED
