"""Install, remove and control a service, with a system that answers by a script."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from byok.clients.service.base import CommandResult, Launch
from byok.clients.service.control import UserService, make_launch
from byok.clients.service.systemd import Systemd
from byok.clients.service.windows_tasks import WindowsTasks
from byok.core.errors import CannotStart, ConfigError, NotReady
from byok.core.platform.paths import find_paths
from tests.fakes.ran import FakeRun

FAILS = CommandResult(1, "", "no bus")


def make_service(
    folder: Path, script: Mapping[str, CommandResult] | None = None
) -> tuple[UserService, FakeRun, Launch]:
    run = FakeRun(script)
    paths = find_paths()
    service = UserService(Systemd(folder / "units"), paths, run)
    return service, run, make_launch(paths, 8317, platform="linux")


def install(service: UserService, launch: Launch) -> None:
    service.install(list(service.system.render(launch)), launch)


def test_install_then_uninstall_leaves_nothing(tmp_path: Path) -> None:
    service, run, launch = make_service(tmp_path)
    assert not service.is_installed()
    install(service, launch)
    assert service.is_installed()
    assert not service.is_for_others()
    assert all(folder.is_dir() for folder in launch.folders)
    assert run.commands[0] == "systemctl --user daemon-reload"
    gone = service.uninstall()
    assert gone == [str(path) for path in service.system.paths]
    assert list((tmp_path / "units").iterdir()) == []
    assert "systemctl --user disable --now byok.socket byok.service" in run.commands
    assert service.uninstall() == []


def test_unit_of_somebody_else_is_not_touched_and_nothing_is_run(
    tmp_path: Path,
) -> None:
    service, run, launch = make_service(tmp_path)
    unit = service.system.paths[1]
    unit.parent.mkdir()
    unit.write_text("[Service]\nExecStart=/bin/other\n")
    acts: tuple[Callable[[], object], ...] = (
        lambda: install(service, launch),
        service.uninstall,
        service.start,
        service.stop,
    )
    for act in acts:
        with pytest.raises(ConfigError, match="was not written by byok"):
            act()
    assert run.commands == []
    assert [path.name for path in unit.parent.iterdir()] == ["byok.service"]


def test_service_of_another_home_is_not_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _, launch = make_service(tmp_path)
    install(service, launch)
    monkeypatch.setenv("BYOK_HOME", str(tmp_path / "other"))
    other, run, _ = make_service(tmp_path)
    assert not other.is_installed()
    assert other.is_for_others()
    with pytest.raises(NotReady, match="not installed"):
        other.start()
    with pytest.raises(ConfigError, match="with other folders"):
        other.uninstall()
    assert run.commands == []
    assert all(path.exists() for path in service.system.paths)


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_what_is_not_installed_is_not_controlled(verb: str, tmp_path: Path) -> None:
    service, run, launch = make_service(tmp_path)
    with pytest.raises(NotReady) as caught:
        getattr(service, verb)()
    assert "byok service install" in caught.value.hint
    assert run.commands == []
    install(service, launch)
    getattr(service, verb)()
    assert f"systemctl --user {verb.replace('re', '')}" in run.commands[-1]


def test_system_that_does_not_run_is_said_with_a_cure(tmp_path: Path) -> None:
    service, _, _ = make_service(tmp_path, {"systemctl --user show-env": FAILS})
    with pytest.raises(CannotStart, match="systemd does not run here") as caught:
        service.check_system()
    for cure in ("WSL", "su or sudo", "container"):
        assert cure in caught.value.hint


def test_sandbox_is_left_out_where_it_does_not_work(tmp_path: Path) -> None:
    service, _, launch = make_service(tmp_path)
    assert service.fit(launch).sandbox
    weak, _, _ = make_service(tmp_path, {"systemd-run": FAILS})
    assert not weak.fit(launch).sandbox


def test_state_is_what_the_system_says(tmp_path: Path) -> None:
    script = {"systemctl --user show": CommandResult(0, "ActiveState=active\n")}
    service, _, _ = make_service(tmp_path, script)
    assert service.state().running
    silent, _, _ = make_service(tmp_path, {"systemctl --user show": FAILS})
    with pytest.raises(CannotStart, match="no bus"):
        silent.state()


@pytest.mark.parametrize("taken", [True, False])
def test_task_of_somebody_else_is_not_replaced(taken: bool, tmp_path: Path) -> None:
    paths = find_paths()
    run = FakeRun({} if taken else {"schtasks /query": FAILS})
    service = UserService(WindowsTasks(tmp_path, "u"), paths, run)
    launch = make_launch(paths, 8317, platform="win32")
    if taken:
        with pytest.raises(ConfigError, match="another service"):
            install(service, launch)
        assert run.commands == ["schtasks /query /tn byok"]
        return
    install(service, launch)
    install(service, launch)  # the second time the name is byok's
    assert service.is_installed()
