"""What users are told of the index."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core.errors import BadRequest
from byok.search.index.report import explain_path, find_skipped
from byok.search.index.types import MAX_BYTES, Skipped, SkipReason
from tests.fakes.engines import indexed, written


async def test_report_says_why_a_path_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "project"
    files = {"a.py": "x = 1\n", "src/b.py": "y = 2\n", ".env": "A=1", "a.log": "x"}
    written(root, {**files, ".gitignore": "*.log\n", "e.bin": "\0"})
    (root / "link").symlink_to(root / "a.py")
    (root / "folder").symlink_to(root / "src")
    expected = {
        "a.py": ("indexed", None, True),
        ".env": ("skipped", SkipReason.SECRET, True),
        "no/.env": ("skipped", SkipReason.SECRET, False),
        "a.log": ("skipped", SkipReason.IGNORED, True),
        "e.bin": ("skipped", SkipReason.BINARY, True),
        "link": ("skipped", SkipReason.LINK, True),
        "src": ("a folder that is looked into", None, True),
        "no.py": ("not there", None, False),
        "a\0.py": ("not there", None, False),
        "x" * 5000: ("not there", None, False),
        "folder": ("skipped", SkipReason.LINK, True),
    }
    async with indexed(tmp_path / "e", root) as made:
        told = {
            path: explain_path(made.workspaces, made.store, root / path)
            for path in expected
        }
        with pytest.raises(BadRequest):
            explain_path(made.workspaces, made.store, tmp_path / "elsewhere")
    found = {path: (one.what, one.reason, one.exists) for path, one in told.items()}
    assert found == expected
    assert told["no/.env"].cure == "/no/.env"
    assert told["a.log"].explanation == "*.log in .gitignore, line 1"


async def test_report_does_not_call_a_file_waiting_that_the_scan_leaves_out(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"big.py": "x" * (MAX_BYTES + 1)})
    os.mkfifo(root / "pipe.py")
    async with indexed(tmp_path / "e", root) as made:
        told = [
            explain_path(made.workspaces, made.store, root / path)
            for path in ("big.py", "pipe.py", "big.py/x.py")
        ]
    assert [(one.what, one.reason) for one in told] == [
        ("skipped", SkipReason.TOO_LARGE),
        ("skipped", SkipReason.NOT_A_FILE),
        ("not there", None),
    ]


async def test_report_of_nested_workspaces_is_that_of_the_inner_one(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"in/a.py": "x = 1\n", ".gitignore": "in/\n"})
    async with indexed(tmp_path / "e", root, root / "in") as made:
        found = explain_path(made.workspaces, made.store, root / "in/a.py")
    assert found.what == "indexed"


@pytest.mark.case("B71")
async def test_report_names_what_does_not_count_of_an_ignore_file(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"a/b.py": "x = 1\n", "a/.gitignore": "[[:nope:]]\n", "c.py": "y"})
    async with indexed(tmp_path / "e", root) as made:
        below = explain_path(made.workspaces, made.store, root / "a/b.py")
        beside = explain_path(made.workspaces, made.store, root / "c.py")
    assert below.what == beside.what == "indexed"
    assert "a/.gitignore" in " ".join(below.notes)
    assert not beside.notes


# Files that are not searchable are listed with their reasons


def make(root: Path) -> None:
    """Write a project that has something of most reasons."""
    logs = {f"{n}.log": "x" for n in range(5)}
    files = {"a.py": "x = 1\n", "e.bin": "\0", ".env": "A=1", **logs}
    written(root, {**files, ".gitignore": "*.log\nold/\n", "old/b.py": "y"})
    written(root, {"big.py": "x" * (MAX_BYTES + 1), "in/deep/.env": "B=2"})
    (root / "link").symlink_to(root / "a.py")


async def test_files_that_are_left_out_are_counted_and_come_page_by_page(
    tmp_path: Path,
) -> None:
    make(root := tmp_path / "project")
    times: Iterator[float] = iter([0.0, 10.0])
    async with indexed(tmp_path / "e", root) as made:
        space, store = made.workspaces[0], made.store
        found = find_skipped(space, store)
        first, second, third = (
            find_skipped(
                space,
                store,
                wanted=lambda file: file.reason is SkipReason.IGNORED,
                offset=offset,
                limit=4,
            )
            for offset in (0, 4, 8)
        )
        hasty = find_skipped(space, store, seconds=4, clock=lambda: next(times))
    assert found.whole
    assert found.counts == {
        SkipReason.BINARY: 1,
        SkipReason.SECRET: 2,
        SkipReason.IGNORED: 6,
        SkipReason.TOO_LARGE: 1,
        SkipReason.LINK: 1,
    }
    assert Skipped("old/", SkipReason.IGNORED) in found.files
    assert Skipped("in/deep/.env", SkipReason.SECRET) in found.files
    assert len(found.files) == 11
    paths = [file.path for file in (*first.files, *second.files)]
    assert sorted(paths) == ["0.log", "1.log", "2.log", "3.log", "4.log", "old/"]
    assert (len(first.files), third.files) == (4, [])
    assert first.counts == second.counts == third.counts
    assert not hasty.whole
    assert hasty.counts == {SkipReason.BINARY: 1}  # the database knows it
