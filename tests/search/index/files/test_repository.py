"""Where git keeps what belongs to a folder."""

from pathlib import Path

import pytest

from byok.search.index.files.repository import Repository, marks_of, repository_of
from tests.fakes.project import Repository as Made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(tmp_path.resolve() / "repo")
    made.commit("one", "pkg/a.py")
    return made


def found(root: Path) -> Repository:
    repository = repository_of(root)
    assert repository is not None
    return repository


def test_a_folder_of_a_repository_has_the_git_folder_above_it(made: Made) -> None:
    git = made.root / ".git"
    expected = Repository(made.root, git, git)
    assert found(made.root) == expected
    assert found(made.root / "pkg") == expected


def test_worktree_has_its_own_git_folder_and_shares_the_rest(made: Made) -> None:
    made.git("worktree", "add", "-q", "../tree")
    git = made.root / ".git"
    tree = made.root.with_name("tree")
    assert found(tree) == Repository(tree, git / "worktrees" / "tree", git)


def test_a_submodule_is_a_repository_of_its_own(made: Made) -> None:
    inner = Made(made.root / "vendor" / "inner")
    inner.commit("two", "b.py")
    moved = made.root / ".git" / "modules" / "inner"
    moved.parent.mkdir()
    (inner.root / ".git").rename(moved)
    (inner.root / ".git").write_text("gitdir: ../../.git/modules/inner\n")
    assert found(inner.root) == Repository(inner.root, moved, moved)


@pytest.mark.parametrize(
    "content",
    ["", "gitdir: ", "gitdir: none", "gitdir: a\0b", "x" * 9000, "gitdir: //host/it"],
)
def test_git_file_that_names_no_folder_is_ignored(made: Made, content: str) -> None:
    (made.root / "pkg" / ".git").write_text(content)
    repository = found(made.root / "pkg")
    assert repository.top == made.root / "pkg"
    assert set(marks_of(repository)) == {None}


def test_repository_marks_differ_after_a_commit_and_after_a_checkout(
    made: Made,
) -> None:
    made.git("worktree", "add", "-q", "../tree")
    for place in (made, Made(made.root.with_name("tree"))):
        repository = found(place.root)
        marks = marks_of(repository)
        assert marks == marks_of(repository)
        place.commit("more", "b.py")
        after = marks_of(repository)
        assert after != marks
        place.git("checkout", "-q", "-b", f"other-{place.root.name}")
        assert marks_of(repository) != after
