"""Watches on single folders: what they tell, which there are, what follows renames."""

import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.fakes.patience import PATIENCE

if sys.platform != "linux":
    pytest.skip("only Linux has these watches", allow_module_level=True)

from byok.search.index.workspace import watch
from byok.search.index.workspace.watch import FolderWatches
from tests.fakes.engines import written

Told = frozenset[str] | None


class Followed:
    """Watches, and what they tell in a thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.watches = FolderWatches(root)
        self.told: SimpleQueue[Told | Exception] = SimpleQueue()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        assert self.told.get(timeout=PATIENCE) == frozenset()

    def _run(self) -> None:
        try:
            self.watches.follow(self.told.put)
        except Exception as error:
            self.told.put(error)

    @property
    def count(self) -> int:
        """How many folders are watched, as the system sees it."""
        info = Path("/proc/self/fdinfo", str(self.watches._fd))
        return info.read_text().count("inotify wd")

    def enter(self, *paths: str) -> None:
        for path in paths:
            self.watches.enter(path)

    def until(self, last: str) -> set[str]:
        """Return what was told of up to some path."""
        found: set[str] = set()
        while last not in found:
            told = self.told.get(timeout=PATIENCE)
            assert isinstance(told, frozenset)
            found |= told
        return found

    def close(self) -> None:
        self.watches.close()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Followed]:
    followed = Followed(written(tmp_path / "p", {"src/sub/a.py": "", "out/b.py": ""}))
    yield followed
    followed.close()


def test_inotify_reports_only_folders_that_were_entered(at: Followed) -> None:
    at.enter("", "src")
    assert at.count == 2
    for path in ("out/b.py", "src/sub/a.py", "src/new.py", "last"):
        (at.root / path).write_text("x")
    assert at.until("last") == {"src/new.py", "last"}


def test_inotify_reports_a_renamed_folder_under_its_new_name(at: Followed) -> None:
    at.enter("", "src", "src/sub")
    (at.root / "src").rename(at.root / "lib")
    assert at.until("lib") == {"src", "lib"}
    at.enter("lib", "lib/sub")
    at.watches.keep({"src"}, ())
    (at.root / "lib" / "sub" / "c.py").touch()
    assert at.until("lib/sub/c.py") == {"lib/sub/c.py"}


def test_inotify_releases_what_is_not_entered_again(at: Followed) -> None:
    at.enter("", "src", "src/sub", "out")
    at.watches.keep({"unknown"}, ())
    assert at.count == 4
    at.watches.keep({"src"}, {"src"})
    assert at.count == 3
    at.watches.keep({""}, {"", "out"})
    assert at.count == 2
    shutil.rmtree(at.root / "out")
    (at.root / "last").touch()
    at.until("last")
    assert at.count == 1


def test_inotify_reports_a_root_that_vanishes(at: Followed) -> None:
    at.enter("", "src")
    at.root.rename(at.root.with_name("q"))
    assert isinstance(at.told.get(timeout=PATIENCE), FileNotFoundError)
    at.enter("src")
    at.watches.keep({""}, ())


def test_inotify_reports_lost_events(at: Followed) -> None:
    lost = watch._EVENT.pack(-1, watch._OVERFLOW, 0, 0)
    assert at.watches._read_events(lost) is None
