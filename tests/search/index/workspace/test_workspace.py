"""A declared folder: what differs, who its members are, how far it is."""

from pathlib import Path

import pytest

from byok.search.index.files.ignore import Rules
from byok.search.index.files.reading import Unreadable
from byok.search.index.files.scan import Steering
from byok.search.index.types import FileFacts, Phase
from byok.search.index.workspace.workspace import (
    Progress,
    Stopped,
    TooManyFiles,
    Workspace,
    is_unsettled,
    is_wanted,
    total_view,
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


def known(space: Workspace) -> dict[str, FileFacts]:
    return {
        path: FileFacts(f.st_size, f.st_mtime_ns, f.st_ctime_ns, f.st_ino)
        for path in ("a.py", "src/b.py")
        for f in [(space.root / path).stat()]
    }


def test_workspace_everything_is_new_where_nothing_is_known(space: Workspace) -> None:
    found = space.compare({}, limit=10)
    assert (sorted(found.changed), found.gone) == (["a.py", "src/b.py"], [])
    assert space.counters.mtime_misses == 2


def test_workspace_files_with_the_same_stat_are_not_read_again(
    space: Workspace,
) -> None:
    found = space.compare(known(space), limit=10)
    assert (found.changed, found.gone) == ([], [])
    assert (space.counters.mtime_hits, space.counters.mtime_misses) == (2, 0)


def test_workspace_reports_changed_and_removed_files(space: Workspace) -> None:
    before = known(space)
    (space.root / "a.py").write_text("longer")
    (space.root / "src" / "b.py").unlink()
    found = space.compare(before, limit=10)
    assert (found.changed, found.gone) == (["a.py"], ["src/b.py"])


def test_workspace_file_that_a_new_rule_ignores_is_removed(space: Workspace) -> None:
    before = known(space)
    (space.root / ".gitignore").touch()
    space.rules = rules(gitignore="src/\n")
    assert space.compare(before, limit=10).gone == ["src/b.py"]


def test_workspace_file_limit(
    space: Workspace,
) -> None:
    assert len(space.compare({}, limit=2).changed) == 2
    with pytest.raises(TooManyFiles):
        space.compare({}, limit=1)


def test_workspace_scan_can_be_cancelled(space: Workspace) -> None:
    space.stop()
    with pytest.raises(Stopped):
        space.compare({}, limit=10)


def test_workspace_folder_that_is_gone_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        Workspace(1, tmp_path / "none", rules()).compare({}, limit=10)


def test_workspace_members_come_change_and_go(space: Workspace) -> None:
    space.load({"a.py": 1, "src/b.py": 2, "src/c.py": 3, "srcs": 4})
    space.set_member("a.py", 9)
    space.set_member("srcs", None)
    space.drop_members(["src/b.py", "unknown"])
    assert space.ids() == {9, 1, 3}
    assert space.searched_blobs("a.py") == {9, 1}  # until the new one is found
    space.forget_older()
    assert space.ids() == {9, 3}
    assert space.searched_blobs("a.py") == {9}
    assert space.blob_of("a.py") == 9
    assert space.blob_of("srcs") is None
    assert sorted(space.paths()) == ["a.py", "src/c.py"]


def test_workspace_member_sets_have_names_of_their_own(space: Workspace) -> None:
    names = [space.members()[0]]
    space.load({"a": 1})
    names.append(space.members()[0])
    space.set_member("a", 2)
    names.append(space.members()[0])
    space.drop_members(["a"])
    names.append(space.members()[0])
    assert len(set(names)) == 4
    assert space.members() == (names[-1], frozenset())


def test_several_workspaces_are_one_view(tmp_path: Path) -> None:
    one, two = (Workspace(n, tmp_path, rules()) for n in (1, 2))
    one.load({"a": 1, "b": 2})
    two.load({"a": 2, "b": 3})
    both = total_view([one, two], 7)
    assert both.ids == {1, 2, 3}
    assert both.chunks == 7
    assert both.key != total_view([one], 7).key
    assert total_view([one], 7).ids == {1, 2}
    assert total_view([], 7).ids == frozenset()


def test_workspace_progress_has_files_and_share(space: Workspace) -> None:
    space.load({"a.py": 1, "b.bin": None})
    space.status.add_queued(2)
    space.status.begin_indexing()
    space.status.finish_one()
    assert space.progress == Progress(str(space.root), Phase.INDEXING, 50.0, 2, 1)


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


def test_workspace_counts_files_up_and_down(
    space: Workspace,
) -> None:
    space.load({"a.py": 1, "picture.png": None})
    assert space.file_count == 2
    space.expect(["a.py", "b.py"])
    assert space.file_count == 3
    space.set_member("b.py", 5)
    space.set_member("a.py", None)
    assert (space.file_count, space.paths()) == (3, ["b.py"])
    space.drop_members(["picture.png", "b.py"])
    assert space.file_count == 1


def test_workspace_compares_only_some_folders(space: Workspace) -> None:
    entered: list[str] = []
    found = space.compare({}, limit=10, tops={"src"}, entering=entered.append)
    assert found == (["src/b.py"], [])
    assert entered == ["src"]
