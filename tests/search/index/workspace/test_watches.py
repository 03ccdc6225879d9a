"""One watch on a whole tree, for systems that have that."""

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from watchfiles import Change

from byok.search.index.workspace.watch import TreeWatch
from tests.fakes.patience import PATIENCE

Told = frozenset[str] | None | Exception


def following(watch: TreeWatch) -> tuple[threading.Thread, "SimpleQueue[Told]"]:
    """Follow in a thread, from when it has begun."""
    told: SimpleQueue[Told] = SimpleQueue()

    def run() -> None:
        try:
            watch.follow(told.put)
        except (OSError, RuntimeError) as error:
            told.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert told.get(timeout=PATIENCE) == frozenset()
    return thread, told


def test_watches_report_any_change_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    watch = TreeWatch(tmp_path)
    watch.enter("src")
    watch.keep({""}, ())
    thread, told = following(watch)
    (tmp_path / "src" / "a.py").write_text("x")
    assert told.get(timeout=PATIENCE) == frozenset({"src/a.py"})
    watch.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_watches_report_a_root_that_vanishes_as_an_error() -> None:
    root = Path("/p")

    def events(*_: Any, **__: Any) -> Iterator[set[tuple[Change, str]]]:
        yield set()
        yield set()
        yield {(Change.modified, "/p"), (Change.added, "/p/a")}
        yield {(Change.deleted, "/p")}

    thread, told = following(TreeWatch(root, events))
    assert told.get(timeout=PATIENCE) == frozenset({"a"})
    assert isinstance(told.get(timeout=PATIENCE), FileNotFoundError)
    thread.join(PATIENCE)
