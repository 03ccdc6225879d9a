"""The history of a workspace is as new as the repository that it is in."""

import asyncio
from pathlib import Path

import pytest

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
