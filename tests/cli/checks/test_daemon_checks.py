"""The daemon: its version, its settings, its service, its port, and what it tells."""

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from byok.cli.checks import daemon_checks
from byok.cli.checks.daemon_checks import (
    check_daemon,
    check_daemon_version,
    check_localhost,
    check_official,
    check_port,
    check_service,
    check_settings_in_force,
    check_vectors,
    judge_service,
    official_service,
    vectors,
)
from byok.cli.checks.results import CannotCheck, CheckState
from byok.clients.service.base import Command, CommandResult, ServiceSystem, mark_of
from byok.clients.service.base import ServiceState as State
from byok.clients.service.control import UserService, make_launch, write_files
from byok.clients.service.launchd import Launchd
from byok.clients.service.systemd import Systemd
from byok.clients.service.windows_tasks import WindowsTasks
from byok.core.daemon.instance import Instance
from byok.core.daemon.token import read_token
from byok.core.errors import CannotStart
from byok.core.platform.paths import Paths, find_paths
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows

DAEMON = Instance(42, 8317, "a", 0.0)

OK, WARNING = CheckState.OK, CheckState.WARNING

SETTINGS = (
    *("[routing.official]", 'base_url = "https://t.example"'),
    *("[embeddings]", 'upstream = "ollama"', 'model = "m"'),
)


async def test_a_daemon_that_runs_proves_itself_at_both_addresses() -> None:
    with daemon_thread() as running:
        async with surroundings() as around:
            found = await check_daemon(around)
            version = await check_daemon_version(around)
            port = await check_port(around)
    assert {r.state for r in (found, version, port)} == {CheckState.OK}
    assert f"port {running.port}" in found.found
    assert f"port {running.port} on 127.0.0.1 and ::1" in port.found


async def test_a_daemon_that_does_not_run_is_a_warning() -> None:
    async with surroundings() as around:
        result = await check_daemon(around)
        with pytest.raises(CannotCheck):
            await check_daemon_version(around)
    assert (result.state, result.cure) == (CheckState.WARNING, "byok serve")


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

    monkeypatch.setattr(daemon_checks, "UserService", Service)


async def test_a_machine_without_the_service_is_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path, "")
    async with surroundings() as around:
        result = await check_service(around)
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
        result = await check_service(around)
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
            result = await check_service(around)
        assert ("another Python" in result.found) is is_other


async def test_a_system_without_services_is_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Nothing(UserService):
        @classmethod
        def of_this_machine(cls, paths: Paths) -> "Nothing":
            raise CannotStart("byok knows no service manager of this system.")

    monkeypatch.setattr(daemon_checks, "UserService", Nothing)
    async with surroundings() as around:
        assert (await check_service(around)).state is CheckState.NOT_CHECKED


async def test_any_port_cannot_be_checked() -> None:
    write_settings("[server]", "port = 0")
    async with surroundings() as around:
        assert (await check_port(around)).state is CheckState.NOT_CHECKED


@pytest.mark.parametrize(
    ("addresses", "state"),
    [
        (["127.0.0.1", "::1"], CheckState.OK),
        (["192.0.2.1"], CheckState.FAILURE),
        ([], CheckState.WARNING),
    ],
    ids=str,
)
async def test_localhost_must_be_this_machine(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], state: CheckState
) -> None:
    def resolve(host: str, *rest: Any) -> list[Any]:
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(0, 0, 0, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with surroundings() as around:
        result = check_localhost(around)
    assert result.state is state
    assert bool(result.cure) is (state is not CheckState.OK)


async def test_what_is_not_set_is_not_checked() -> None:
    async with surroundings() as around:
        assert (*await official_service(around), *await vectors(around)) == ()
    write_settings(*SETTINGS)
    async with surroundings() as around:
        assert (*await official_service(around), *await vectors(around)) == ("", "")
        for check in (check_official, check_vectors):
            with pytest.raises(CannotCheck, match="no daemon"):
                await check(around)


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        (
            {"groups": {"chat": "official", "edit": "off"}},
            CheckState.OK,
            "used for chat",
        ),
        ({"groups": {}}, CheckState.OK, "not used"),
        ({"troubles": {"token": "refused"}}, CheckState.WARNING, "token: refused"),
    ],
    ids=str,
)
async def test_the_official_service(
    answer: dict[str, Any], state: CheckState, said: str
) -> None:
    async with daemon_rows({"/byok/official": answer}):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_official(around)
    assert (result.state, result.found) == (state, said)


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        ({"state": "filling", "chunks": 9, "embedded": 3}, CheckState.OK, "3 of 9"),
        ({"state": "no_consent"}, CheckState.WARNING, "not enabled"),
        ({"state": "waiting", "error": "down"}, CheckState.WARNING, "down"),
        ({"state": "failed", "error": "no such model"}, CheckState.FAILURE, "no such"),
    ],
    ids=str,
)
async def test_vectors(answer: dict[str, Any], state: CheckState, said: str) -> None:
    async with daemon_rows({"/byok/embed/status": answer}):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_vectors(around)
    assert result.state is state
    assert said in result.found
    assert bool(result.cure) is (state is not CheckState.OK)


def told(settings: dict[str, Any]) -> dict[str, Any]:
    file = str(find_paths().config)
    facts = {"file": file, "error": "", "restart": [], **settings}
    return {"/byok/daemon": {"version": "", "settings": facts}}


@pytest.mark.parametrize(
    ("settings", "state", "said", "cure"),
    [
        ({}, CheckState.OK, "as it is", ""),
        ({"error": "bad key"}, CheckState.FAILURE, "bad key", "byok config check"),
        ({"restart": ["server.port"]}, CheckState.WARNING, "server.port", "restart"),
        ({"file": "/x.toml"}, CheckState.WARNING, "/x.toml", "--config /x.toml"),
    ],
    ids=str,
)
async def test_settings_that_are_not_in_force_are_named(
    settings: dict[str, Any], state: CheckState, said: str, cure: str
) -> None:
    async with daemon_rows(told(settings)):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_settings_in_force(around)
    assert result.state is state
    assert said in result.found
    assert cure in result.cure


@pytest.mark.parametrize("name", ["127.0.0.1", "::1"])
async def test_a_port_that_another_program_has_is_named(name: str) -> None:
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    with socket.socket(family) as stranger:
        stranger.bind((name, 0))
        stranger.listen()
        write_settings("[server]", f"port = {stranger.getsockname()[1]}")
        async with surroundings() as around:
            result = await check_port(around)
    assert result.state is CheckState.FAILURE
    assert f"on {name} is taken" in result.found
    assert "byok token rotate" in result.cure
    assert sys.platform != "linux" or "ss -ltnp" in result.cure


async def test_somebody_else_at_the_other_address_is_named() -> None:
    async with daemon_rows():  # it listens on 127.0.0.1 alone
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_port(around)
    assert result.state is CheckState.FAILURE
    assert "on ::1 is taken" in result.found
    assert "byok token rotate" in result.cure


async def test_systemd_may_listen_for_byok(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    facts = "UnitFileState=enabled\nActiveState=active\nSubState=listening\n"
    use(monkeypatch, tmp_path, facts)
    for unit in ("byok.socket", "byok.service"):
        (tmp_path / unit).write_text(f"# {mark_of(find_paths().state_dir)}\n")
    with socket.create_server(("127.0.0.1", 0)) as systemd:
        write_settings("[server]", f"port = {systemd.getsockname()[1]}")
        async with surroundings() as around:
            result = await check_port(around)
    assert result.state is CheckState.OK
    assert "the first request starts byok" in result.found
