"""Files that are not searchable are listed with their reasons."""

from collections.abc import Iterator
from pathlib import Path

from byok.search.index.report import SkippedFiles, find_skipped
from byok.search.index.types import MAX_BYTES, Skipped, SkipReason
from tests.fakes.engines import complete, engine, written


def make(root: Path) -> None:
    """Write a project that has something of most reasons."""
    logs = {f"{n}.log": "x" for n in range(5)}
    files = {"a.py": "x = 1\n", "e.bin": "\0", ".env": "A=1", **logs}
    written(root, {**files, ".gitignore": "*.log\nold/\n", "old/b.py": "y"})
    written(root, {"big.py": "x" * (MAX_BYTES + 1), "in/deep/.env": "B=2"})
    (root / "link").symlink_to(root / "a.py")


async def test_each_reason_is_counted_and_a_folder_that_is_left_out_once(
    tmp_path: Path,
) -> None:
    make(root := tmp_path / "project")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        found = find_skipped(made.workspaces[0], made.store)
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


async def test_the_files_of_one_reason_come_page_by_page(tmp_path: Path) -> None:
    make(root := tmp_path / "project")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)

        def page(offset: int) -> SkippedFiles:
            return find_skipped(
                made.workspaces[0],
                made.store,
                reason=SkipReason.IGNORED,
                offset=offset,
                limit=4,
            )

        first, second, third = page(0), page(4), page(8)
    paths = [file.path for file in (*first.files, *second.files)]
    assert sorted(paths) == ["0.log", "1.log", "2.log", "3.log", "4.log", "old/"]
    assert (len(first.files), third.files) == (4, [])
    assert first.counts == second.counts == third.counts


async def test_a_walk_that_takes_too_long_ends_and_says_so(tmp_path: Path) -> None:
    make(root := tmp_path / "project")
    times: Iterator[float] = iter([0.0, 10.0])
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        found = find_skipped(
            made.workspaces[0], made.store, seconds=4, clock=lambda: next(times)
        )
    assert not found.whole
    assert found.counts == {SkipReason.BINARY: 1}  # the database knows it


async def test_a_folder_that_is_gone_has_what_is_known_of_it(tmp_path: Path) -> None:
    make(root := tmp_path / "project")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        root.rename(tmp_path / "moved")
        found = find_skipped(made.workspaces[0], made.store)
    assert not found.whole
    assert found.counts[SkipReason.IGNORED] == 0
