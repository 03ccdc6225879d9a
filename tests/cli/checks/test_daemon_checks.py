"""The daemon: its version, its settings, its service, its port, and what it tells."""

import errno
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from byok.cli.checks import base as module
from byok.cli.checks import daemon_checks
from byok.cli.checks.base import CheckContext, CheckResult, CheckState
from byok.cli.checks.daemon_checks import (
    check_daemon,
    check_daemon_version,
    check_localhost,
    check_port,
    check_search_server,
    check_service,
    check_settings_in_force,
    check_vectors,
    cure_for_port,
    judge_service,
)
from byok.cli.checks.upstream_checks import check_web_tools
from byok.clients.service.base import Command, CommandResult, ServiceSystem
from byok.clients.service.base import ServiceState as State
from byok.clients.service.control import UserService, make_launch, write_files
from byok.clients.service.systems import Launchd, Systemd, WindowsTasks
from byok.core.daemon.instance import Instance
from byok.core.errors import CannotStart
from byok.core.platform.paths import Paths, find_paths
from byok.features.status import Meter, StatusLine
from tests.fakes.daemon import daemon_thread
from tests.fakes.doctors import judged, run_check, surroundings, write_settings
from tests.fakes.rows import daemon_rows

DAEMON = Instance(42, 8317, "a", 0.0)

OK, WARNING, FAILURE = CheckState.OK, CheckState.WARNING, CheckState.FAILURE


async def test_a_daemon_that_runs_proves_itself_at_both_addresses() -> None:
    with daemon_thread() as running:
        async with surroundings() as around:
            found = await check_daemon(around)
            version = await check_daemon_version(around)
            port = await check_port(around)
    assert {r.state for r in (found, version, port)} == {CheckState.OK}
    assert f"port {running.port}" in found.found
    assert f"port {running.port} on 127.0.0.1 and ::1" in port.found


@pytest.mark.case("B108")
async def test_a_process_that_only_holds_the_lock_is_named_and_gets_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_START_SECONDS", 0.1)
    async with daemon_rows() as rows, surroundings() as around:
        rows.honest = False
        result = await check_daemon(around)
    assert (result.state, "daemon.json" in result.cure) == (CheckState.FAILURE, True)
    assert rows.tokens == []


@pytest.mark.parametrize(
    ("state", "daemon", "is_other", "expected", "said"),
    [
        (State(True, True, 42), DAEMON, False, OK, "it runs"),
        (State(True, False, 0, waits=True), None, False, OK, "first request"),
        (State(True, True), DAEMON, False, OK, "it runs"),  # a system without pids
        (State(True, True, 42), DAEMON, True, WARNING, "another Python"),
        (State(False, True, 42), DAEMON, False, WARNING, "at login"),
        (State(True, True, 7), DAEMON, False, WARNING, "by hand"),
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


def use(monkeypatch: pytest.MonkeyPatch, system: ServiceSystem) -> None:
    """Let the machine have a system whose programs print nothing."""

    def run(command: Command) -> CommandResult:
        return CommandResult(0, "")

    class Service(UserService, frozen=True):
        @classmethod
        def of_this_machine(cls, paths: Paths) -> "Service":
            return cls(system, paths, run)

    monkeypatch.setattr(daemon_checks, "UserService", Service)


@pytest.mark.parametrize("kind", ["systemd", "launchd", "Windows"])
async def test_the_service_of_this_python_is_known_in_every_spelling(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    monkeypatch.setattr(
        sys, "executable", str(tmp_path / '100%n/it\'s \\\\ & "one"/python.exe')
    )
    systems: dict[str, ServiceSystem] = {
        "systemd": Systemd(tmp_path),
        "launchd": Launchd(tmp_path, 1000),
        "Windows": WindowsTasks(tmp_path, "u"),
    }
    system, paths = systems[kind], find_paths()
    use(monkeypatch, system)
    write_files(system.render(make_launch(paths, 8317, tmp_path / "c.toml")))
    for place, is_other in ((sys.executable, False), ("/other/python", True)):
        monkeypatch.setattr(sys, "executable", place)
        async with surroundings() as around:
            result = await check_service(around)
        assert ("another Python" in result.found) is is_other


@pytest.mark.parametrize(
    ("addresses", "state"),
    [(["127.0.0.1", "::1"], CheckState.OK), (["192.0.2.1"], CheckState.FAILURE)],
)
async def test_localhost_must_be_this_machine(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], state: CheckState
) -> None:
    def resolve(host: str, *rest: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    result = await run_check(check_localhost)
    assert result.state is state
    assert bool(result.cure) is (state is not CheckState.OK)


WEB_KEY = {"upstream": "web-search", "fingerprint": "12ab"}


@pytest.mark.parametrize(
    ("keys", "warns", "state", "said"),
    [
        ([], False, CheckState.FAILURE, "key"),
        ([WEB_KEY], False, CheckState.OK, "3"),
        ([WEB_KEY], True, CheckState.WARNING, "no answer"),
    ],
)
async def test_web_tools(
    keys: list[Any], warns: bool, state: CheckState, said: str
) -> None:
    lines = [StatusLine("by brave, 3 searches and pages today")]
    lines += [StatusLine("the last call failed: no answer", warns=True)] * warns
    rows = to_builtins([Meter("web_per_day", 3, 500), *lines])
    answers = {
        "/byok/daemon": {"version": "", "features": {"web": rows}},
        "/byok/keys": {"keys": keys},
    }
    write_settings("[web]", 'search = "brave"')
    async with daemon_rows(answers), surroundings() as around:
        result = await check_web_tools(around)
    judged(result, state, said)


def index(**remote: Any) -> dict[str, Any]:
    status = {"enabled": True, "note": "", "asked": 9, "answered": 8, **remote}
    return {"/byok/index/status": {"remote": status}}


def settings(**facts: Any) -> dict[str, Any]:
    known = {"file": "", "error": "", "restart": [], **facts}
    return {"/byok/daemon": {"version": "", "settings": known}}


def vectors(state: str, **facts: Any) -> dict[str, Any]:
    return {"/byok/embed/status": {"state": state, **facts}}


OTHER = {"/byok/daemon": (404, {"error": "?"})}


@pytest.mark.parametrize(
    ("check", "answers", "state", "said", "cure"),
    [
        (
            check_daemon_version,
            {"/byok/daemon": {"version": "0.1.0"}},
            *(WARNING, "the daemon is byok 0.1.0", "byok restart"),
        ),
        (check_daemon_version, OTHER, FAILURE, "another version", "byok stop"),
        (check_vectors, vectors("filling", chunks=9, embedded=3), OK, "3 of 9", ""),
        (check_vectors, vectors("waiting", error="down"), WARNING, "down", "status"),
        (check_vectors, vectors("failed", error="odd"), FAILURE, "odd", "status"),
        (check_search_server, index(enabled=False), WARNING, "nothing", "enable"),
        (check_search_server, index(note="Down."), WARNING, "Down.", "who runs it"),
        (check_search_server, index(), OK, "9 questions, 8 answered", ""),
        (check_settings_in_force, settings(error="bad"), FAILURE, "bad", "check"),
        (
            check_settings_in_force,
            settings(restart=["server.port"]),
            *(WARNING, "server.port", "restart"),
        ),
        (
            check_settings_in_force,
            settings(file="/x.toml"),
            *(WARNING, "/x.toml", "--config /x.toml"),
        ),
    ],
)
async def test_what_a_daemon_tells_of_itself_is_judged(
    check: Callable[[CheckContext], Awaitable[CheckResult]],
    answers: dict[str, Any],
    state: CheckState,
    said: str,
    cure: str,
) -> None:
    async with daemon_rows(answers), surroundings() as around:
        result = await check(around)
    judged(result, state, said, cure)


async def test_a_port_that_another_program_has_is_named() -> None:
    with socket.socket(socket.AF_INET6) as stranger:
        stranger.bind(("::1", 0))
        stranger.listen()
        write_settings("[server]", f"port = {stranger.getsockname()[1]}")
        async with surroundings() as around:
            result = await check_port(around)
    judged(result, CheckState.FAILURE, "on ::1 is taken", "byok token rotate")
    assert sys.platform != "linux" or "ss -ltnp" in result.cure


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EADDRNOTAVAIL])
def test_no_program_is_looked_for_where_none_has_the_port(reason: int) -> None:
    try:
        raise CannotStart("Not to be had.", hint="Do this.") from OSError(reason, "x")
    except CannotStart as error:
        assert cure_for_port(error, 8317) == "Do this."


async def test_somebody_else_at_the_other_address_is_named() -> None:
    async with daemon_rows(), surroundings() as around:  # it listens on 127.0.0.1 alone
        result = await check_port(around)
    judged(result, CheckState.FAILURE, "on ::1 is taken", "byok token rotate")
