"""An index on disk, and ways to damage its files."""

import random
from collections.abc import Callable
from pathlib import Path

from byok.search.index.store.tantivy_index import TantivyIndex
from tests.fakes.stores import words


def make_index(folder: Path) -> Path:
    """Make an index of two segments, one with deletions."""
    index = TantivyIndex(folder)
    for blob_id in range(1, 60):
        chunks = [f"alpha w{blob_id} v{n}" for n in range(4)]
        index.add(blob_id, words(f"f{blob_id}.py", *chunks))
        if blob_id == 40:
            index.commit()
    index.remove(7)
    index.commit()
    index.close()
    return folder


def _flip(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return (
        content[:at] + bytes([content[at] ^ rng.randrange(1, 256)]) + content[at + 1 :]
    )


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [
    _flip,
    lambda content, rng: b"",
    lambda content, rng: content[: rng.randrange(len(content))],
    lambda content, rng: rng.randbytes(len(content)),
]


def harm(folder: Path, seed: int) -> Path:
    """Damage a file of an index, or remove it; returns which."""
    rng = random.Random(seed)
    files = sorted(f for f in folder.iterdir() if not f.name.startswith("."))
    file = rng.choice(files)
    kind = rng.randrange(len(DAMAGES) + 1)
    if kind == len(DAMAGES):
        file.unlink()
    else:
        replace(file, DAMAGES[kind](file.read_bytes(), rng))
    return file


def replace(file: Path, content: bytes) -> None:
    """Put other content into the file's place, as a new file.

    A thread of an index that was closed may still have the old one mapped: to shorten
    what is mapped ends the process.
    """
    beside = file.with_name(".new")
    beside.write_bytes(content)
    beside.replace(file)
