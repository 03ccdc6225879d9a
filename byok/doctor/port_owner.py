"""Which process listens on a port, by Linux's /proc; nothing is asked of it."""

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_LISTENS, _INODE = "0A", 9  # a state, and a column
_MOST_PROCESSES, _MOST_HANDLES = 4096, 4096
_TABLES = {socket.AF_INET: "net/tcp", socket.AF_INET6: "net/tcp6"}


class PortOwner(NamedTuple):
    """A process that listens; the name is what the process calls itself."""

    pid: int
    name: str

    @property
    def is_systemd(self) -> bool:
        """Whether it listens for another program, which it starts when needed."""
        return self.name == "systemd"


def find_owner(
    proc: Path, family: socket.AddressFamily, host: str, port: int
) -> PortOwner | None:
    """Return who listens at an address or at all; None if that cannot be seen.

    The processes of other users cannot be looked into.
    """
    if sys.platform != "linux":
        return None
    links = {f"socket:[{inode}]" for inode in _inodes(proc, family, host, port)}
    if not links:
        return None
    folders = (entry for entry in proc.iterdir() if entry.name.isdigit())
    for number, folder in enumerate(folders):
        if number >= _MOST_PROCESSES:
            break
        if not links.isdisjoint(_handles(folder / "fd")):
            return PortOwner(int(folder.name), _name(folder))
    return None


def _inodes(
    proc: Path, family: socket.AddressFamily, host: str, port: int
) -> Iterator[str]:
    """Give the sockets that listen there; any address of the machine counts, too."""
    address = _in_hex(family, host)
    for table in {_TABLES[family], _TABLES[socket.AF_INET6]}:
        lines: list[str] = []
        with suppress(OSError):
            lines = (proc / table).read_text("ascii").splitlines()[1:]
        for columns in (line.split() for line in lines):
            if len(columns) > _INODE and columns[3] == _LISTENS:
                there, _, number = columns[1].partition(":")
                is_there = there == address or not there.strip("0")
                if is_there and int(number, 16) == port:
                    yield columns[_INODE]


def _in_hex(family: socket.AddressFamily, host: str) -> str:
    """Write an address as the kernel does: words in the order of this machine."""
    raw = socket.inet_pton(family, host)
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    return "".join(f"{word:08X}" for word in words)


def _handles(folder: Path) -> Iterator[str]:
    with suppress(OSError):  # another user's process, or it has ended
        for number, handle in enumerate(folder.iterdir()):
            if number >= _MOST_HANDLES:
                return
            with suppress(OSError):
                yield str(handle.readlink())


def _name(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "comm").read_text("utf-8", "replace").strip()
    return "?"
