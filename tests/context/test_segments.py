"""Damage in the files of an index is seen before anything is read from them."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from byok.context.lexical import LexicalIndex
from byok.context.segments import damaged
from tests.context.stores import words


def make_index(folder: Path) -> Path:
    """Make an index of two segments, one with deletions."""
    index = LexicalIndex(folder)
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
        file.write_bytes(DAMAGES[kind](file.read_bytes(), rng))
    return file


def test_a_whole_index(tmp_path: Path) -> None:
    assert damaged(make_index(tmp_path)) == ""


def test_every_byte_of_a_segment_counts(tmp_path: Path) -> None:
    make_index(tmp_path)
    rng = random.Random(5)
    for file in sorted(tmp_path.glob("*.*")):
        if file.name.startswith(".") or file.suffix == ".json":
            continue
        whole = file.read_bytes()
        for how in DAMAGES * 3:
            file.write_bytes(how(whole, rng))
            # The version in the footer is looked at by tantivy, and by nobody else.
            assert damaged(tmp_path) == file.name or _only_version(file, whole)
        file.unlink()
        assert damaged(tmp_path) == file.name
        file.write_bytes(whole)


def _only_version(file: Path, whole: bytes) -> bool:
    start = whole.rindex(b'{"version"')
    return file.read_bytes()[:start] == whole[:start]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"segments": 1}', b"\xff"])
def test_a_broken_list_of_segments(tmp_path: Path, content: bytes) -> None:
    make_index(tmp_path)
    (tmp_path / "meta.json").write_bytes(content)
    assert damaged(tmp_path) == "meta.json"
