"""The history of a workspace is as new as the repository that it is in."""

import asyncio
from pathlib import Path

import pytest

from byok.search.index.workspace.git_history import Commits
from tests.fakes.engines import complete, engine, until
from tests.fakes.repository import Repository


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    made = Repository(tmp_path.resolve() / "repo")
    made.commit("one", "pkg/a.py")
    return made


@pytest.mark.parametrize("place", [".", "pkg", "../tree", "../tree/pkg"])
async def test_a_question_knows_the_newest_commit_of_any_work_tree(
    tmp_path: Path, made: Repository, place: str
) -> None:
    made.git("worktree", "add", "-q", "../tree")
    root = (made.root / place).resolve()
    async with engine(tmp_path / "data", root) as opened:
        await complete(opened)
        [space] = opened.workspaces
        await until(lambda: opened.history_of(space) is not None)
        newest = Repository(root).commit("two", "b.py")

        async def known() -> bool:
            await opened.look([space])
            history = opened.history_of(space)
            return history is not None and history.head == newest

        await until(known)


async def test_commits_of_a_repository_that_is_made_later_are_found(
    tmp_path: Path, made: Repository
) -> None:
    root = made.root / "pkg"
    (made.root / ".git").rename(tmp_path / "away")
    async with engine(tmp_path / "data", root) as opened:
        await complete(opened)
        [space] = opened.workspaces
        commits = opened._syncs[space.id].commits
        await until(lambda: commits._marks is not None)
        assert commits.history is None
        assert not await commits.are_new()
        (tmp_path / "away").rename(made.root / ".git")
        assert await commits.are_new()
        await asyncio.gather(commits.read(), commits.read())
        assert commits.history is not None
        assert not await commits.are_new()


@pytest.mark.parametrize(("failures", "again"), [(1, True), (2, True), (3, False)])
async def test_commits_are_read_again_where_git_was_too_slow(
    tmp_path: Path,
    made: Repository,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    again: bool,
) -> None:
    """The third failure in a row is believed until the repository changes."""
    async with engine(tmp_path / "data") as opened:
        commits = Commits(1, made.root, opened.store)
        with monkeypatch.context() as slow:
            slow.setattr(
                "byok.search.index.workspace.git_history.head", lambda root: None
            )
            for _ in range(failures):
                await commits.read()
        assert commits.history is None
        assert await commits.are_new() is again
        await commits.read()
        assert commits.history is not None
        assert not await commits.are_new()
