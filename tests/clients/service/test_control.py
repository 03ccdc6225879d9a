"""Install, remove and control a service, with a system that answers by a script."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest

from byok.clients.service.base import CommandResult, Launch, ServiceFile, mark_of
from byok.clients.service.control import (
    UserService,
    choose_system,
    make_launch,
    read_mark,
    remove_files,
    write_files,
)
from byok.clients.service.systems import Launchd, Systemd, WindowsTasks
from byok.core.errors import CannotStart, ConfigError, NotReady
from byok.core.language import speaking
from byok.core.platform.paths import find_paths
from tests.fakes.launches import FakeRun

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
        lambda: service.control("start"),
        lambda: service.control("stop"),
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
        other.control("start")
    with pytest.raises(ConfigError, match="with other folders"):
        other.uninstall()
    assert run.commands == []
    assert all(path.exists() for path in service.system.paths)


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_what_is_not_installed_is_not_controlled(
    verb: Literal["start", "restart"], tmp_path: Path
) -> None:
    service, run, launch = make_service(tmp_path)
    with pytest.raises(NotReady) as caught:
        service.control(verb)
    assert "byok service install" in caught.value.hint
    assert run.commands == []
    install(service, launch)
    service.control(verb)
    assert f"systemctl --user {verb.replace('re', '')}" in run.commands[-1]


def test_system_that_does_not_run_is_said_with_a_cure(tmp_path: Path) -> None:
    service, _, _ = make_service(tmp_path, {"systemctl --user show-env": FAILS})
    with pytest.raises(CannotStart, match="systemd does not run here") as caught:
        service.check_system()
    for cure in ("WSL", "su or sudo", "container"):
        assert cure in caught.value.hint


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


MARK = mark_of(Path("/state"))
OURS = f"# {MARK}\n[Unit]\n"


def test_file_in_another_encoding_is_known_again(tmp_path: Path) -> None:
    path = tmp_path / "task.xml"
    write_files([ServiceFile(path, OURS, "utf-16")])
    assert path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff")
    assert read_mark(path) == MARK


@pytest.mark.parametrize("content", ["[Unit]\n", "x" * 70_000 + OURS])
def test_file_of_somebody_else_stays_and_so_does_the_rest(
    content: str, tmp_path: Path
) -> None:
    own, foreign = tmp_path / "byok.socket", tmp_path / "byok.service"
    own.write_text(OURS)
    foreign.write_text(content)
    with pytest.raises(ConfigError, match=r"byok\.service was not written by byok"):
        write_files([ServiceFile(own, "new"), ServiceFile(foreign, "new")])
    with pytest.raises(ConfigError):
        remove_files([own, foreign])
    assert (own.read_text(), foreign.read_text()) == (OURS, content)


@pytest.mark.skipif(os.name != "posix", reason="links and FIFOs")
@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_what_is_no_plain_file_stays(kind: str, tmp_path: Path) -> None:
    path, target = tmp_path / "byok.service", tmp_path / "target"
    if kind == "link":
        target.write_text(OURS)
        path.symlink_to(target)
    else:
        os.mkfifo(path)
    with pytest.raises(ConfigError, match="was not written by byok"):
        write_files([ServiceFile(path, "new")])
    with pytest.raises(ConfigError):
        remove_files([path])
    assert os.path.lexists(path)
    assert not target.exists() or target.read_text() == OURS


def test_each_operating_system_has_its_own() -> None:
    paths = find_paths()
    linux = choose_system(paths, "linux", {"XDG_CONFIG_HOME": "/etc/x"})
    assert linux == Systemd(Path("/etc/x/systemd/user"))
    bare = choose_system(paths, "linux", {"XDG_CONFIG_HOME": "relative"})
    assert bare == Systemd(Path.home() / ".config/systemd/user")
    assert isinstance(choose_system(paths, "darwin", {}), Launchd)
    named = {"USERDOMAIN": "PC", "USERNAME": "u"}
    windows = choose_system(paths, "win32", named)
    assert windows == WindowsTasks(paths.state_dir, "PC\\u")
    with pytest.raises(CannotStart, match="sunos5"):
        choose_system(paths, "sunos5", {})


def test_launch_is_this_interpreter_on_the_folders_of_now() -> None:
    paths = find_paths()
    launch = make_launch(paths, 8317, platform="linux")
    assert launch.python == sys.executable
    assert launch.environment["BYOK_HOME"] == str(paths.config_dir)
    assert launch.folders == (paths.config_dir,)  # the others are below it
    assert launch.mark == mark_of(paths.state_dir)


def test_launch_has_no_key_and_no_foreign_variable() -> None:
    environ = {
        "OPENAI_API_KEY": "sk-1",
        "BYOK_KEY_X": "sk-2",
        "BYOK_VAULT_PASSPHRASE": "sk-3",
        "XDG_DATA_HOME": "/d",
        "XDG_STATE_HOME": "relative",
        "VIRTUAL_ENV": "/project/.venv",
        "PATH": os.pathsep.join(
            ["/project/.venv/bin", "/usr/bin", "relative", "/usr/bin", "/a\nb"]
        ),
    }
    launch = make_launch(find_paths(), 1, environ=environ, platform="linux")
    assert launch.environment == {"XDG_DATA_HOME": "/d", "PATH": "/usr/bin"}


def test_a_service_speaks_the_language_in_which_it_was_installed() -> None:
    with speaking("zh_CN"):
        launch = make_launch(find_paths(), 8317, Path("c.toml"), platform="linux")
    assert launch.options[:3] == ("--lang", "zh", "--config")
    assert make_launch(find_paths(), 8317, platform="linux").options == ()
