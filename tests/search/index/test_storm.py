"""The index never lies: after any changes it holds what a fresh walk finds."""

import asyncio
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from byok.search.index.engine import ContextEngine
from byok.search.index.files.ignore import rules_of
from byok.search.index.files.scan import Counters, walk
from byok.search.index.store.schema import INDEXED
from byok.search.index.types import FoundFile, IndexOptions, blob_name
from tests.fakes.engines import (
    indexed,
    written,
)
from tests.fakes.project import Repository

# A workspace in a storm of changes, and the index beside a fresh walk afterwards.
#
# Nothing but events may tell of changes: no comparison is due.


_NEVER = 1e9  # seconds
_PATIENCE = 60.0
_FOLDERS = ("", "a/", "b/", "a/x/", "b/y/z/", "pkg/lib/", "pkg/app/src/", "out/", "c/")
_NAMES = ("one", "two", "three", "four", "five", "six", "seven")
_NO_TEXT = os.fsdecode(b"\xd6\xd0\xce\xc4")


class Storm:
    """Random changes below a root: files, folders, links, branches, rules, names."""

    def __init__(self, root: Path, outside: Path, seed: int) -> None:
        self.root = root
        self.outside = outside
        self.rng = random.Random(seed)
        self.made = 0
        written(outside, {f"o{n}/f.py": f"out = {n}\n" for n in range(5)})
        files = {f"{at}{name}.py": f"{at}{name}" for at in _FOLDERS for name in _NAMES}
        self.repository = Repository(written(root, files))
        self.repository.commit("all")
        self.repository.git("checkout", "-q", "-b", "other")
        for name in _NAMES[:4]:
            (root / "b" / f"{name}.py").unlink()
            (root / "a" / f"{name}.py").write_text("of another branch\n")
        self.repository.commit("others", "only/here/f.py", "c/also.py")
        kinds: dict[Callable[[], None], int] = {
            self._write: 30, self._append: 15, self._remove: 8, self._rename: 10,
            self._replace: 8, self._move_folder: 5, self._remove_folder: 3,
            self._new_folder: 5, self._link: 6, self._unlink: 4, self._become_link: 2,
            self._no_text: 4, self._rule: 2, self._through_link: 4, self._elsewhere: 2,
            self._switch: 1,
        }  # fmt: skip
        self._kinds, self._weights = [*kinds], [*kinds.values()]

    def step(self) -> None:
        """Change something; what is not possible just now is passed over."""
        self.made += 1
        with suppress(OSError, shutil.Error, CalledProcessError):
            self.rng.choices(self._kinds, self._weights)[0]()

    def _text(self) -> str:
        return f"def made{self.made}():\n    return {self.rng.random()}\n"

    def _path(self) -> Path:
        return self.root / f"{self.rng.choice(_FOLDERS)}{self.rng.choice(_NAMES)}.py"

    def _folder(self) -> Path:
        return self.root / self.rng.choice([at for at in _FOLDERS if at])

    def _write(self) -> None:
        path = self._path()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._text())

    def _append(self) -> None:
        with self._path().open("a") as file:
            file.write(self._text())

    def _remove(self) -> None:
        self._path().unlink()

    def _rename(self) -> None:
        self._path().rename(self._path())

    def _replace(self) -> None:
        path = self._path()
        beside = path.with_suffix(".tmp")
        beside.write_text(self._text())
        beside.replace(path)

    def _move_folder(self) -> None:
        target = self._folder()
        if self.rng.random() < 0.3:
            target = self.root.parent / f"away{self.rng.randrange(3)}"
        if self.rng.random() < 0.3:
            self.root.parent.joinpath(f"away{self.rng.randrange(3)}").rename(target)
        else:
            self._folder().rename(target)

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder())

    def _new_folder(self) -> None:
        below = self._folder() / f"n{self.rng.randrange(4)}" / "deep"
        written(below, {f"{name}.py": self._text() for name in _NAMES[:3]})

    def _link(self) -> None:
        link = self._folder() / f"link{self.rng.randrange(3)}"
        targets = [self._folder(), self.root, link.parent.parent, self.outside]
        link.symlink_to(self.rng.choice(targets))

    def _links(self) -> list[Path]:
        return [path for path in self.root.rglob("link*") if path.is_symlink()]

    def _unlink(self) -> None:
        for link in self._links()[:1]:
            link.unlink()

    def _become_link(self) -> None:
        folder = self._folder()
        moved = folder.with_name(f"moved{self.made}")
        folder.rename(moved)
        folder.symlink_to(moved)
        if self.rng.random() < 0.8:
            folder.unlink()
            moved.rename(folder)

    def _through_link(self) -> None:
        links = self._links()
        if links:
            (self.rng.choice(links) / "one.py").write_text(self._text())

    def _no_text(self) -> None:
        path = self._folder() / f"{_NO_TEXT}{self.rng.randrange(3)}"
        choice = self.rng.randrange(4)
        if choice == 0:
            path.write_text(self._text())
        elif choice == 1:
            written(path, {"inside.py": self._text()})
        elif choice == 2:
            self._path().rename(path.with_suffix(".py"))
        else:
            path.rename(self._path())

    def _rule(self) -> None:
        place = self.rng.choice(
            [self.root, self._folder(), self.root / ".git" / "info"]
        )
        name = "exclude" if place.name == "info" else ".gitignore"
        (place / name).write_text(self.rng.choice(["", "out/\n", "t*.py\n", "x/\n"]))

    def _elsewhere(self) -> None:
        place = self.outside / f"o{self.rng.randrange(5)}" / "f.py"
        place.write_text(self._text())

    def _switch(self) -> None:
        branch = self.rng.choice(["main", "other"])
        if self.rng.random() < 0.3:
            self.repository.commit(f"commit {self.made}")
        self.repository.git("checkout", "-q", "-f", branch)


def wrong(made: ContextEngine, root: Path) -> tuple[list[str], list[str]]:
    """Return the files that a fresh walk finds and the index lacks, and the reverse."""
    there = {}
    for batch in walk(root, rules_of(root, IndexOptions()), Counters()):
        for entry in batch:
            if isinstance(entry, FoundFile):
                content = (root / entry.path).read_bytes()
                there[entry.path] = blob_name(entry.path, content)
    sql = (
        "SELECT f.path, b.name FROM file f LEFT JOIN blob b "
        "ON b.id = f.blob_id AND b.state = ?"
    )
    with made.store.reading() as db:
        known = dict(db.execute(sql, (INDEXED,)).fetchall())
    missing = [path for path, name in there.items() if known.get(path) != name]
    stale = [path for path, name in known.items() if there.get(path) != name]
    [space] = made.workspaces
    if not missing and not stale and space.file_count != len(there):
        stale.append(f"{space.file_count} files are tracked, {len(there)} are there")
    return missing, stale


async def _settle(made: ContextEngine, root: Path) -> None:
    """Wait until nothing is wrong any more."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            with suppress(OSError):
                if await asyncio.to_thread(wrong, made, root) == ([], []):
                    return
            await asyncio.sleep(0.1)


async def storm(folder: Path, steps: int, seed: int, looks: int) -> None:
    """Make so many changes, with some looks at what is known."""
    root = folder.resolve() / "storm"
    blowing = Storm(root, folder / "outside", seed)
    async with indexed(folder / "data", root, compare_seconds=_NEVER) as made:
        for number in range(steps):
            blowing.step()
            if blowing.rng.random() < 0.1:
                await asyncio.sleep(blowing.rng.choice([0, 0, 0.01, 0.05]))
            if number % (steps // looks) == 0 or number == steps - 1:
                await _settle(made, root)


async def packages(folder: Path, count: int) -> None:
    """Edit each of many packages that link to each other; each edit is found."""
    root = folder.resolve() / "monorepo"
    written(root, {".gitignore": "node_modules/\n"})
    for n in range(count):
        home = written(root / f"packages/p{n}", {"src/index.ts": f"export let a{n}\n"})
        (root / "node_modules/@acme").mkdir(parents=True, exist_ok=True)
        (root / f"node_modules/@acme/p{n}").symlink_to(f"../../packages/p{n}")
        (home / "node_modules/@acme").mkdir(parents=True)
        other = (n + 1) % count
        (home / "node_modules/@acme/dep").symlink_to(f"../../../p{other}")
    (root / "current").symlink_to("packages/p0")
    (root / "packages/p1/up").symlink_to("../..")
    (root / "packages/p2/out").symlink_to(folder)
    async with indexed(folder / "data", root, compare_seconds=_NEVER) as made:
        for n in range(count):
            path = f"packages/p{n}/src/index.ts"
            (root / path).write_text(f"export function edited{n}() {{}}\n")
            await _settle(made, root)


pytestmark = pytest.mark.slow  # it works for seconds


async def test_after_a_storm_nothing_is_missing_and_nothing_is_stale(
    tmp_path: Path,
) -> None:
    await storm(tmp_path, 300, seed=1, looks=3)


async def test_storm_edit_in_each_of_many_linked_packages_is_found(
    tmp_path: Path,
) -> None:
    await packages(tmp_path, 6)
