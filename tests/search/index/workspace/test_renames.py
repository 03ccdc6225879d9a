"""Commits from before a file was moved count for the path that it has now."""

import pytest

from byok.search.index.types import MOST_FILES, Commit
from byok.search.index.workspace.git_history import ReadCommit, Rename, follow_renames


def commit(files: str, *moved: tuple[str, str], touched: int = 0) -> ReadCommit:
    names = tuple(files.split())
    read = Commit("", 0, "", names, touched or len(names))
    return ReadCommit(read, [Rename(*pair) for pair in moved])


def files_of(*newest_first: ReadCommit) -> list[str]:
    return [" ".join(one.files) for one in follow_renames(newest_first)]


MOVE = commit("a b", ("a", "b"))


def test_renames_add_the_present_path_to_older_commits() -> None:
    assert files_of(commit("b"), MOVE, commit("a"), commit("a x")) == [
        "b", "a b", "a b", "a x b",
    ]  # fmt: skip


def test_renames_are_followed_over_several_moves() -> None:
    again = commit("b c", ("b", "c"))
    assert files_of(again, commit("b"), MOVE, commit("a")) == [
        "b c", "b c", "a b c", "a c",
    ]  # fmt: skip


def test_renames_leave_a_new_file_in_the_old_place_alone() -> None:
    assert files_of(commit("a"), MOVE, commit("a")) == ["a", "a b", "a b"]


def test_renames_end_where_another_file_had_that_path_before() -> None:
    """`b` was something else until `a` took its place."""
    again = commit("b c", ("b", "c"))
    assert files_of(again, MOVE, commit("b"), commit("a")) == [
        "b c", "a b c", "b", "a c",
    ]  # fmt: skip


def test_renames_within_one_commit_may_swap_files() -> None:
    swap = commit("a b", ("a", "b"), ("b", "a"))
    assert files_of(swap, commit("a"), commit("b")) == ["a b", "a b", "b a"]


@pytest.mark.parametrize(("own", "followed"), [(3, True), (4, False)])
def test_renames_are_followed_for_files_with_fewer_than_five_commits(
    own: int, followed: bool
) -> None:
    """The move itself is one of them."""
    found = files_of(*[commit("b")] * own, MOVE, commit("a"))
    assert found[-1] == ("a b" if followed else "a")


def test_renames_of_large_commits_count_but_their_files_do_not() -> None:
    large = commit("a b", ("a", "b"), touched=MOST_FILES + 1)
    assert files_of(large, commit("a")) == ["a b", "a b"]
    older = commit("a", touched=MOST_FILES + 1)
    assert files_of(MOVE, older) == ["a b", "a"]


def test_renames_of_nothing_are_nothing() -> None:
    assert follow_renames([]) == ()
