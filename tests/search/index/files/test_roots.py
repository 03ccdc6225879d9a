"""Which folders may be workspaces."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.search.index.files.ignore import rules_of
from byok.search.index.files.roots import OwnFolders, check_root
from byok.search.index.files.scan import Counters, walk
from byok.search.index.types import FoundFile, IndexOptions, SkipReason
from tests.fakes.patience import START

NONE = OwnFolders([])


@pytest.mark.parametrize("path", ["/", "~", "none", "\0", "x" * 4000])
def test_workspace_root_that_is_not_allowed_is_refused(path: str) -> None:
    with pytest.raises(ConfigError):
        check_root(Path(path), NONE)


def test_workspace_root_whose_name_no_database_takes_is_refused(
    tmp_path: Path,
) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        root.mkdir()
    except OSError:
        pytest.skip("this disk has no such names")
    with pytest.raises(ConfigError):
        check_root(root, NONE)


def test_workspace_root_is_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert check_root(tmp_path / "link", NONE) == tmp_path / "real"


def test_workspace_rules_come_from_the_folder_and_from_the_user(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    options = IndexOptions(
        allow_secret=["*.pem"], extensions=["py"], own_folders=[tmp_path / "byok"]
    )
    rules = rules_of(tmp_path, options)
    assert rules.reason("a.py") is None
    assert rules.reason("a.log") is SkipReason.IGNORED
    assert rules.reason("a.c") is SkipReason.EXTENSION
    assert rules.reason("byok/a.py") is SkipReason.SECRET
    assert rules.reason("id_rsa") is SkipReason.SECRET
    assert rules.reason("a.pem") is not SkipReason.SECRET


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with byok's own three, and a project beside them."""
    for name in ("config/byok", "state/byok/log", "state/byok/capture", "data/byok"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "own.txt").write_text("private\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("x = 1\n")
    return tmp_path


def own_of(home: Path) -> list[Path]:
    return [home / "config/byok", home / "state/byok", home / "data/byok"]


def test_byoks_own_folder_is_no_workspace_however_it_is_spelled(home: Path) -> None:
    (home / "link").symlink_to(home / "state/byok")
    (home / "above").symlink_to(home / "state")
    (home / "chain").symlink_to(home / "link")
    state = home / "state"
    spellings = [
        *own_of(home),
        *(state / "byok/log", state / "byok/capture", state / "byok/../byok/log"),
        *(home / "work/../state/byok", state / "./byok", Path(f"{state}//byok/")),
        *(home / "link", home / "link/log", home / "above/byok", home / "chain/log"),
        *(home / "link/../byok", Path(os.path.relpath(state / "byok"))),
    ]
    own = OwnFolders(own_of(home))
    for root in spellings:
        with pytest.raises(ConfigError):
            check_root(root, own)
    assert check_root(home / "work", own) == home / "work"


def test_own_folders_behind_a_link_are_known_by_their_real_place(home: Path) -> None:
    (home / "moved").symlink_to(home / "state")
    own = OwnFolders([home / "moved/byok"])
    with pytest.raises(ConfigError):
        check_root(home / "state/byok/log", own)


def test_a_workspace_around_byoks_folders_leaves_them_out(home: Path) -> None:
    rules = rules_of(home, IndexOptions(own_folders=own_of(home), allow_secret=["*"]))
    entries = [entry for batch in walk(home, rules, Counters()) for entry in batch]
    assert [e.path for e in entries if isinstance(e, FoundFile)] == ["work/a.py"]
    assert rules.reason("state/byok/token") is SkipReason.SECRET


MOUNTED = """
import sys
from pathlib import Path
from byok.core.errors import ConfigError
from byok.search.index.files.roots import OwnFolders, check_root
own = OwnFolders([Path(sys.argv[1])])
for root in sys.argv[2:]:
    try:
        print(check_root(Path(root), own))
    except ConfigError:
        pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a folder as Linux does")
def test_a_second_mount_of_an_own_folder_is_no_workspace(home: Path) -> None:
    (home / "mnt").mkdir()
    unshare = ["unshare", "--mount", "--map-root-user"]
    if os.geteuid() == 0:
        unshare = ["unshare", "--mount"]
    for source in ("state/byok", "state/byok/log", "state"):
        script = f'mount --bind {home / source} {home / "mnt"} && exec "$@"'
        below = {"state": "mnt/byok/log"}.get(source, "mnt")
        command = [*unshare, "sh", "-c", script, "sh", sys.executable, "-c", MOUNTED]
        done = subprocess.run(
            [*command, str(home / "state/byok"), str(home / below)],
            capture_output=True,
            text=True,
            check=False,
            timeout=START,
        )
        if done.returncode:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()[:100]}")
        assert done.stdout == "", source
