"""What users are told of the index."""

import os
from pathlib import Path

import pytest

from byok.core.errors import BadRequest
from byok.search.index.report import totals, why
from byok.search.index.types import MAX_BYTES, SkipReason
from tests.fakes.engines import complete, engine, written


async def test_report_says_why_a_path_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "project"
    files = {"a.py": "x = 1\n", "src/b.py": "y = 2\n", ".env": "A=1", "a.log": "x"}
    written(root, {**files, ".gitignore": "*.log\n", "e.bin": "\0"})
    (root / "link").symlink_to(root / "a.py")
    (root / "folder").symlink_to(root / "src")
    expected = {
        "a.py": ("indexed", None),
        ".env": ("skipped", SkipReason.SECRET),
        "a.log": ("skipped", SkipReason.IGNORED),
        "e.bin": ("skipped", SkipReason.BINARY),
        "link": ("skipped", SkipReason.LINK),
        "src": ("a folder that is looked into", None),
        "no.py": ("not there", None),
        "a\0.py": ("not there", None),
        "x" * 5000: ("not there", None),
        "folder": ("skipped", SkipReason.LINK),
    }
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        told = {
            path: why(made.workspaces, made.store, root / path)[:2] for path in expected
        }
        with pytest.raises(BadRequest):
            why(made.workspaces, made.store, tmp_path / "elsewhere")
    assert told == expected


async def test_report_does_not_call_a_file_waiting_that_the_scan_leaves_out(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"big.py": "x" * (MAX_BYTES + 1)})
    os.mkfifo(root / "pipe.py")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        told = [
            why(made.workspaces, made.store, root / path)[:2]
            for path in ("big.py", "pipe.py", "big.py/x.py")
        ]
    assert told == [
        ("skipped", SkipReason.TOO_LARGE),
        ("skipped", SkipReason.NOT_A_FILE),
        ("not there", None),
    ]


async def test_report_of_nested_workspaces_is_that_of_the_inner_one(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"in/a.py": "x = 1\n", ".gitignore": "in/\n"})
    async with engine(tmp_path / "e", root, root / "in") as made:
        await complete(made)
        found = why(made.workspaces, made.store, root / "in/a.py")
    assert found == ("indexed", None, ())


@pytest.mark.case("B71")
async def test_report_names_what_does_not_count_of_an_ignore_file(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"a/b.py": "x = 1\n", "a/.gitignore": "[[:nope:]]\n", "c.py": "y"})
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        below = why(made.workspaces, made.store, root / "a/b.py")
        beside = why(made.workspaces, made.store, root / "c.py")
    assert below.what == beside.what == "indexed"
    assert "a/.gitignore" in " ".join(below.notes)
    assert beside.notes == ()


async def test_report_counts_what_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "project"
    written(root, {"a.py": "x = 1\n"})
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        counted = totals(made.store)
    assert counted == {
        "blobs": 1,
        "blobs_held": 0,
        "bytes_held": 0,
        "checkpoints": 0,
        "chunks": 1,
    }
