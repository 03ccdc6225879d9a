"""A declared folder: what differs, who its members are, how far it is."""

import logging
from pathlib import Path

import pytest

from byok.search.index.files.ignore import Rules
from byok.search.index.files.scan import Steering
from byok.search.index.types import FileFacts, Phase
from byok.search.index.workspace.workspace import (
    Workspace,
    WorkspaceStatus,
    is_unsettled,
    is_wanted,
)
from tests.fakes.engines import project

SECOND = 10**9
YEAR = 365 * 24 * 3600 * SECOND


def rules(**files: str) -> Rules:
    texts = {f".{name}": text.encode() for name, text in files.items()}
    return Rules(texts.get)


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    root = project(tmp_path / "p", a__py="1", src___b__py="2")
    return Workspace(3, root, rules())


def test_workspace_members_come_change_and_go(space: Workspace) -> None:
    space.load({"a.py": 1, "src/b.py": 2, "src/c.py": 3, "srcs": 4})
    space.set_member("a.py", 9)
    space.set_member("srcs", None)
    space.drop_members(["src/b.py", "unknown"])
    assert space.ids() == {9, 1, 3}
    assert space.searched_blobs("a.py") == {9, 1}  # until the new one is found
    space.forget_older_versions()
    assert space.ids() == {9, 3}
    assert space.searched_blobs("a.py") == {9}
    assert space.blob_of("a.py") == 9
    assert space.blob_of("srcs") is None
    assert sorted(space.paths()) == ["a.py", "src/c.py"]


@pytest.mark.parametrize(
    ("age", "since_change", "unsettled"),
    [
        pytest.param(SECOND, SECOND, True, id="just written"),
        pytest.param(3 * SECOND, 3 * SECOND, False, id="seconds ago"),
        pytest.param(YEAR, SECOND, True, id="an old file just put here"),
        pytest.param(-YEAR, SECOND, True, id="dated into the future just now"),
        pytest.param(-YEAR, 3 * SECOND, False, id="dated into the future before"),
        pytest.param(-YEAR, -YEAR, False, id="a clock that was set back"),
        pytest.param(56 * YEAR, 3 * SECOND, False, id="of 1970"),
    ],
)
@pytest.mark.case("B100")
def test_workspace_looks_again_only_at_files_whose_date_may_hide_a_change(
    age: int, since_change: int, unsettled: bool
) -> None:
    now = 57 * YEAR
    facts = FileFacts(1, now - age, now - since_change, 1)
    assert is_unsettled(facts, now) is unsettled


def test_workspace_ignores_events_of_ignored_files() -> None:
    given = Workspace(1, Path("/p"), rules(gitignore="*.log\n.gitignore\n"))
    given.steering = Steering(
        frozenset({".git/HEAD"}), frozenset({"/r/.git/logs/HEAD"})
    )
    wanted = ("a.py", ".git/HEAD", "/r/.git/logs/HEAD", ".gitignore", "src/.gitignore")
    assert all(is_wanted(given, path) for path in wanted)
    unwanted = ("a.log", ".git/index", ".env", "/r/.git/index", "/r/a.py", "\udcff.py")
    assert not any(is_wanted(given, path) for path in unwanted)


# The status of a workspace: phases, shares, and what users are told


@pytest.fixture
def status() -> WorkspaceStatus:
    return WorkspaceStatus(Path("/project"))


def test_workspace_status_note_says_everything_that_is_wrong(
    status: WorkspaceStatus,
) -> None:
    assert status.note == ""
    status.lose_folder()
    status.report_watching("it is not watched")
    assert "its folder is gone" in status.note
    assert "it is not watched" in status.note
    assert (status.phase, status.percentage) == (Phase.GONE, 0.0)
    status.trouble = ""
    assert status.note == "it is not watched"
    status.report_watching("")
    status.report_failure(OSError("no"))
    assert status.note == "could not be synchronised: no"


def test_saved_files_write_no_lines_that_could_lie_in_the_folder_themselves(
    status: WorkspaceStatus, caplog: pytest.LogCaptureFixture
) -> None:
    """Else `nohup byok serve`, whose output lies there, would never come to rest."""
    caplog.set_level(logging.DEBUG)
    told = []
    for phases in (
        [Phase.SCANNING, Phase.INDEXING, Phase.COMPLETE],
        [Phase.INDEXING, Phase.COMPLETE] * 2,  # files are saved
        [Phase.SCANNING, Phase.COMPLETE],
        [Phase.GONE, Phase.SCANNING, Phase.INDEXING, Phase.COMPLETE],
    ):
        caplog.clear()
        for phase in phases:
            status.enter(phase)
        told.append(len(caplog.records))
    assert told == [3, 0, 2, 4]
