"""Which system it is, and what the service of this shell runs."""

import os
import sys
from pathlib import Path

import pytest

from byok.clients.service.base import mark_of
from byok.clients.service.control import choose_system, make_launch
from byok.clients.service.launchd import Launchd
from byok.clients.service.systemd import Systemd
from byok.clients.service.windows_tasks import WindowsTasks
from byok.core.errors import CannotStart
from byok.core.platform.paths import find_paths


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


def test_settings_file_is_passed_on_by_its_whole_path(tmp_path: Path) -> None:
    launch = make_launch(find_paths(), 1, Path("x.toml"))
    assert launch.options == ("--config", str(Path("x.toml").absolute()))
