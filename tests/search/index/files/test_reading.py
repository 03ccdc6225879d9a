"""Reading below a root: nothing outside of it, nothing but plain files, no mixtures."""

import itertools
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from byok.search.index.files.reading import Folder, Unreadable, facts_of
from byok.search.index.types import FileFacts, SkipReason

LIMIT = 1_000


def reason(root: Path, path: str, limit: int = LIMIT) -> SkipReason:
    with Folder(root) as folder, pytest.raises(Unreadable) as caught:
        folder.read(path, limit)
    return caught.value.reason


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c.txt").write_bytes(b"content")
    (tmp_path / "outside.txt").write_bytes(b"OUTSIDE")
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "root-evil" / "x").write_bytes(b"OUTSIDE")
    return root


def test_file_is_read_with_its_stat(root: Path) -> None:
    with Folder(root) as folder:
        content, facts = folder.read("a/b/c.txt", 7)
    assert content == b"content"
    assert facts == facts_of((root / "a/b/c.txt").stat())
    assert facts.size == 7


@pytest.mark.case("B66")
@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "/", "/etc/passwd", "../outside.txt", "a/../../outside.txt"),
        *("a//b/c.txt", "a/./b/c.txt", "a/b/c.txt/", "../root-evil/x", "a\0b"),
        *("x" * 5_000, "a/" * 5_000 + "x", "\ud800", "missing", "a/b/c.txt/d"),
        *("..\\..\\x", "C:\\x", "C:x", "\\\\srv\\s", "CON", "a/b/c.txt."),
    ],
)
def test_path_that_leaves_the_root_is_refused(root: Path, path: str) -> None:
    assert reason(root, path) is SkipReason.NOT_ACCESSIBLE


@pytest.mark.case("B67")
@pytest.mark.parametrize("target", ["../outside.txt", "/etc/passwd", "..", "loop", "a"])
def test_symlinks_are_not_followed(root: Path, target: str) -> None:
    (root / "loop").symlink_to(target)
    assert reason(root, "loop") is SkipReason.LINK
    (root / "folder").symlink_to("a")
    assert reason(root, "folder/b/c.txt") is SkipReason.LINK


@pytest.mark.case("B68")
def test_special_files_are_not_read(root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "folder.py").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "s"))
        assert reason(root, "s") is SkipReason.NOT_A_FILE
    assert reason(root, "fifo") is SkipReason.NOT_A_FILE
    assert reason(root, "folder.py") is SkipReason.NOT_A_FILE
    assert reason(Path("/dev"), "zero") is SkipReason.NOT_A_FILE


@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_file_size_limit_is_kept_to_the_byte(root: Path, size: int, fits: bool) -> None:
    (root / "f").write_bytes(b"x" * size)
    if fits:
        with Folder(root) as folder:
            assert len(folder.read("f", 100)[0]) == size
    else:
        assert reason(root, "f", 100) is SkipReason.TOO_LARGE


@pytest.mark.case("F24")
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_file_without_permission_is_not_accessible(root: Path) -> None:
    (root / "f").touch(mode=0o000)
    assert reason(root, "f") is SkipReason.NOT_ACCESSIBLE


@pytest.mark.slow
@pytest.mark.case("B70")
@pytest.mark.parametrize("swapped", ["d/x", "d"])
def test_symlink_swapped_in_never_shows_what_is_outside(
    root: Path, swapped: str
) -> None:
    outside = root.parent / "elsewhere"
    outside.mkdir()
    (outside / "x").write_bytes(b"OUTSIDE")
    inside = root / "inside"
    (root / "d").mkdir()
    inside.mkdir()
    for place in (root / "d" / "x", inside / "x"):
        place.write_bytes(b"inside")
    place = root / swapped
    link, kept = root / "link", root / "kept"

    def swap() -> None:
        link.symlink_to(outside / "x" if swapped == "d/x" else outside)
        place.rename(kept)
        link.rename(place)
        place.unlink()
        kept.rename(place)

    seen = set[bytes]()
    with Folder(root) as folder, running(swap) as swaps:
        while len(swaps) < 300 or (not seen and len(swaps) < 30_000):
            try:
                seen.add(folder.read("d/x", LIMIT)[0])
            except Unreadable as exc:
                assert exc.reason is not SkipReason.NOT_A_FILE
    assert seen == {b"inside"}


@pytest.mark.case("F24")
@pytest.mark.parametrize(("changes", "content"), [(1, b"111111"), (99, None)])
def test_file_that_keeps_changing_is_whole_or_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, changes: int, content: bytes | None
) -> None:
    read, numbers = os.read, iter(range(changes + 1))

    def write() -> None:
        """Write the next version, in place and of the same size."""
        for number in itertools.islice(numbers, 1):
            (root / "f").write_bytes(b"%d" % (number % 10) * 6)
            os.utime(root / "f", (number, number))

    def read_half(fd: int, size: int) -> bytes:
        half = read(fd, min(size, 3))
        write()
        return half

    write()
    monkeypatch.setattr(os, "read", read_half)
    if content is None:
        assert reason(root, "f") is SkipReason.UNSTABLE
    else:
        with Folder(root) as folder:
            assert folder.read("f", LIMIT)[0] == content


@pytest.mark.case("F24")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_file_with_more_content_than_its_size_is_not_read() -> None:
    assert reason(Path("/proc/self"), "status") is SkipReason.UNSTABLE


def test_no_descriptor_stays_open(root: Path) -> None:
    before = next_descriptor()
    with Folder(root) as folder:
        for path in ("a/b/c.txt", "a/x/y", "a/b", "a/b/c.txt/d", "a/\0/c"):
            with suppress(Unreadable):
                folder.read(path, 2**20)
    folder.close()
    assert next_descriptor() == before


@pytest.mark.case("B100")
def test_stat_numbers_that_no_database_holds_are_folded() -> None:
    far = os.stat_result(
        (0o100644, 2**64 - 1, 1, 1, 0, 0, 5, 0, 0, 0),
        {"st_mtime_ns": 2**63 + 1, "st_ctime_ns": -1},
    )
    assert facts_of(far) == FileFacts(5, 1 - 2**63, -1, -1)


def next_descriptor() -> int:
    """Return the lowest free descriptor."""
    fd = os.open(".", os.O_RDONLY)
    os.close(fd)
    return fd


class running:
    """Repeat an action in a thread; counts how often it was done."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._stop = threading.Event()
        self._done: list[None] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> list[None]:
        self._thread.start()
        return self._done

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._action()
            self._done.append(None)
