"""A disk so small that a test can fill it, and what a power cut leaves of a folder.

Of a file that is what was synced. A new name may be lost until its folder was synced,
and may be kept without it: both are tried at every moment.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """Mount a disk of that size on a new folder; skips where this user may not."""
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not mount or not umount:
        pytest.skip("there is no mount here")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run([umount, "-l", folder], check=True)


def fill(filler: Path) -> None:
    """Write a file until the disk is full."""
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        while True:
            file.write(bytes(4096))


class Power:
    """Watches what is synced below `root`, which is a folder that lasts."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}
        self._names: dict[int, set[str]] = {}
        self.cuts = 0
        for name in ("fsync", "link", "replace", "rename", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))
        self._check: Callable[[Path], None] | None = None

    def check_each(self, check: Callable[[Path], None]) -> None:
        """Let the power go off before and after each call; `check` what is left."""
        self._check = check

    def cut(self, *, names_last: bool = False) -> Path:
        """Return a copy of what is left; `names_last`: also names without a sync."""
        self.cuts += 1
        left = self._root.with_name(f"{self._root.name}-{self.cuts}")
        self._copy(self._root, left, names_last)
        return left

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            self._off()
            done = call(*arguments, **options)
            if call.__name__ == "fsync":
                self._synced(arguments[0])
            self._off()
            return done

        return watched

    def _off(self) -> None:
        if self._check is None:
            return
        check, self._check = self._check, None  # it makes calls of its own
        check(self.cut())
        check(self.cut(names_last=True))
        self._check = check

    def _synced(self, handle: int) -> None:
        facts = os.fstat(handle)
        try:
            self._names[facts.st_ino] = set(os.listdir(handle))
        except NotADirectoryError:
            self._sizes[facts.st_ino] = facts.st_size

    def _copy(self, folder: Path, left: Path, names_last: bool) -> None:
        shutil.copytree(folder, left, ignore=lambda _, names: names)
        lasting = self._names.get(folder.stat().st_ino, set())
        for path in folder.iterdir():
            if not names_last and path.name not in lasting:
                continue
            if path.is_dir():
                self._copy(path, left / path.name, names_last)
            else:
                size = self._sizes.get(path.stat().st_ino, 0)
                (left / path.name).write_bytes(path.read_bytes()[:size])
                shutil.copymode(path, left / path.name)
