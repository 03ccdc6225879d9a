"""The walk: what it finds, what it leaves out, in bounded and repeatable steps."""

import os
import shutil
import socket
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from byok.search.index.files.ignore import Rules
from byok.search.index.files.reading import facts_of
from byok.search.index.files.repository import load
from byok.search.index.files.scan import Counters, walk
from byok.search.index.types import MAX_BYTES, FoundFile, Skipped, SkipReason


def scanned(root: Path, **options: Any) -> tuple[list[FoundFile | Skipped], Counters]:
    counters = Counters()
    rules = Rules(partial(load, root), **options)
    entries = [entry for batch in walk(root, rules, counters) for entry in batch]
    return entries, counters


def found(root: Path) -> list[str]:
    return [entry.path for entry in scanned(root)[0] if isinstance(entry, FoundFile)]


def skipped(root: Path) -> dict[str, SkipReason]:
    return {
        entry.path: entry.reason
        for entry in scanned(root)[0]
        if isinstance(entry, Skipped)
    }


def put(root: Path, *paths: str) -> None:
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def test_scan_gives_files_sorted_folder_by_folder(root: Path) -> None:
    put(root, "b/z.py", "b/a.py", "b/c/d.py", "a/x.py", "z.py", "B.py")
    order = ["B.py", "z.py", "a/x.py", "b/a.py", "b/z.py", "b/c/d.py"]
    assert found(root) == order
    [first, *_], _ = scanned(root)
    assert first == FoundFile("B.py", facts_of((root / "B.py").stat()))


def test_scan_gives_an_ignored_folder_as_one_entry(root: Path) -> None:
    put(root, "node_modules/a/b.js", ".git/config", "src/gen/a.py", "src/a.py", ".env")
    (root / "src/.gitignore").write_text("gen/\n")
    assert found(root) == ["src/.gitignore", "src/a.py"]
    assert skipped(root) == {
        ".env": SkipReason.SECRET,
        ".git/": SkipReason.SECRET,
        "node_modules/": SkipReason.IGNORED,
        "src/gen/": SkipReason.IGNORED,
    }


@pytest.mark.case("B67")
def test_scan_neither_lists_nor_enters_symlinks(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "other/secret.py")
    targets: dict[str, str | Path] = {
        "file": "/etc/passwd",
        "up": "..",
        "self": "self",
        "other": tmp_path / "other",
        "none": "missing",
    }
    for name, target in targets.items():
        (root / name).symlink_to(target)
    assert found(root) == []
    assert skipped(root) == dict.fromkeys(sorted(targets), SkipReason.LINK)


@pytest.mark.case("B68")
def test_scan_leaves_out_special_files(root: Path) -> None:
    os.mkfifo(root / "fifo")
    put(root, "folder.py/inside.py")
    (root / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "sock"))
        assert skipped(root) == {
            "fifo": SkipReason.NOT_A_FILE,
            "sock": SkipReason.NOT_A_FILE,
            "zero": SkipReason.LINK,
        }
    assert found(root) == ["folder.py/inside.py"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_scan_does_not_enter_mounts() -> None:
    others = [str(path) for path in Path("/").iterdir() if path.name != "proc"]
    rules = Rules(lambda path: None, noise=others)
    entries = [entry for batch in walk(Path("/"), rules, Counters()) for entry in batch]
    assert Skipped("proc/", SkipReason.NOT_ACCESSIBLE) in entries


def test_scan_shows_names_without_an_encoding_with_escapes(root: Path) -> None:
    try:
        (root / os.fsdecode(b"a\xff.py")).touch()
        (root / os.fsdecode(b"d\xfe")).mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    (root / os.fsdecode(b"d\xfe") / "x.py").touch()
    assert skipped(root) == dict.fromkeys(["a\\xff.py", "d\\xfe/"], SkipReason.ENCODING)


@pytest.mark.case("B101", "B102")
def test_scan_accepts_odd_names(root: Path) -> None:
    names = [
        "a b.py",
        "a'b\".py",
        "a\nb.py",
        "漢字/é.py",
        "🙂.py",
        "a.",
        "A.",
        "e\u0301",
    ]
    put(root, *names)
    there = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    assert sorted(found(root)) == sorted(there)
    assert found(root) == found(root)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_scan_leaves_out_a_folder_without_permission(root: Path) -> None:
    (root / "closed").mkdir(mode=0o000)
    assert skipped(root) == {"closed/": SkipReason.NOT_ACCESSIBLE}


def test_scan_leaves_out_a_folder_that_vanishes(root: Path) -> None:
    put(root, *(f"a/{number}" for number in range(300)), "b/x", "c/x")
    batches = walk(root, Rules(partial(load, root)), Counters())
    next(batches)
    shutil.rmtree(root / "b")
    entries = [entry for batch in batches for entry in batch]
    assert Skipped("b/", SkipReason.NOT_ACCESSIBLE) in entries
    assert "c/x" in [entry.path for entry in entries]


@pytest.mark.slow
@pytest.mark.case("B78")
def test_scan_steps_are_bounded(root: Path) -> None:
    put(root, *(f"flat/{number}.py" for number in range(1_000)))
    for number in range(300):
        (root / f"empty/{number}").mkdir(parents=True)
    put(root, *(f"many/{number}/x.py" for number in range(300)))
    counters = Counters()
    sizes, probed = [], [0]
    for batch in walk(root, Rules(partial(load, root)), counters):
        sizes.append(len(batch))
        probed.append(counters.names_probed)
    assert max(sizes) <= 512
    assert max(b - a for a, b in pairwise(probed)) <= 1_024
    assert sum(sizes) == counters.accepted == 1_300


def test_scan_depth_is_limited(root: Path) -> None:
    inside = root
    for _ in range(140):
        inside /= "d"
    inside.mkdir(parents=True)
    [(path, reason)] = skipped(root).items()
    assert reason is SkipReason.NOT_ACCESSIBLE
    assert path == "d/" * 129


def test_scan_counters(root: Path) -> None:
    put(root, "a.py", "b.txt", ".env", "id_rsa", "node_modules/x.js")
    (root / "link").symlink_to("a.py")
    (root / "large.py").write_bytes(b"x" * (MAX_BYTES + 1))
    _, counters = scanned(root, extensions=("py",))
    assert (counters.accepted, counters.names_probed) == (1, 7)
    assert (counters.ignored, counters.secret) == (3, 2)
    assert (counters.not_plain_files, counters.too_large) == (0, 1)
    assert counters.walk_seconds > 0
    assert counters.stat_seconds > 0


def test_scan_of_some_folders_reports_each_before_it_is_listed(
    tmp_path: Path,
) -> None:
    put(tmp_path, "a.py", "src/b.py", "src/deep/c.py", "lib/d.py", "node_modules/e.py")
    entered: list[str] = []

    def enter(path: str) -> None:
        entered.append(path)
        if (tmp_path / path).is_dir():
            (tmp_path / path / "late.py").touch()

    rules = Rules(lambda path: None)
    batches = walk(
        tmp_path, rules, Counters(), tops={"src", "gone", "lib"}, entering=enter
    )
    paths = [e.path for batch in batches for e in batch if isinstance(e, FoundFile)]
    assert paths == [
        *("lib/d.py", "lib/late.py", "src/b.py", "src/late.py"),
        *("src/deep/c.py", "src/deep/late.py"),
    ]
    assert entered == ["gone", "lib", "src", "src/deep"]
