"""Damage is seen before anything is read; foreign files are never touched."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.search.index.store.tantivy_index import (
    TantivyIndex,
    check_folder,
    find_damaged,
)
from tests.fakes.segments import DAMAGES, make_index, replace
from tests.fakes.stores import words


def test_segment_check_accepts_a_whole_index(tmp_path: Path) -> None:
    assert find_damaged(make_index(tmp_path)) == ""


def test_every_byte_of_a_segment_counts(tmp_path: Path) -> None:
    make_index(tmp_path)
    rng = random.Random(5)
    for file in sorted(tmp_path.glob("*.*")):
        if file.name.startswith(".") or file.suffix == ".json":
            continue
        whole = file.read_bytes()
        for how in DAMAGES * 3:
            replace(file, how(whole, rng))
            # The version in the footer is looked at by tantivy, and by nobody else.
            assert find_damaged(tmp_path) == file.name or _only_version(file, whole)
        file.unlink()
        assert find_damaged(tmp_path) == file.name
        file.write_bytes(whole)


def _only_version(file: Path, whole: bytes) -> bool:
    start = whole.rindex(b'{"version"')
    return file.read_bytes()[:start] == whole[:start]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"segments": 1}', b"\xff"])
def test_a_broken_list_of_segments(tmp_path: Path, content: bytes) -> None:
    make_index(tmp_path)
    (tmp_path / "meta.json").write_bytes(content)
    assert find_damaged(tmp_path) == "meta.json"


FOREIGN = {
    "thesis.tex": b"\\section{One}",
    "photo.jpg": b"\xff\xd8",
    "index.idx": b"mine",
    f"{'0' * 31}g.idx": b"mine",
    f"{'0' * 32}.idx.bak": b"mine",
    ".tmp": b"mine",
    ".tmp-notes": b"mine",
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def foreign(folder: Path, **more: bytes) -> Path:
    """Make a folder of files that are not an index's."""
    folder.mkdir(parents=True)
    for name, content in {**FOREIGN, **more}.items():
        (folder / name).write_bytes(content)
    return folder


def _linked(place: Path) -> Path:
    place.symlink_to(foreign(place.with_name("papers")))
    return place


def _linked_index(place: Path) -> Path:
    place.symlink_to(make_index(place.with_name("elsewhere")))
    return place


def _with_a_list(place: Path) -> Path:
    foreign(place)
    (place / "meta.json").write_bytes(b'{"name": "thesis"}')
    return place


@pytest.mark.case("B110")
@pytest.mark.parametrize("made", [foreign, _linked, _linked_index, _with_a_list])
def test_index_folder_that_may_be_somebody_elses_is_refused_unchanged(
    tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    folder = made(tmp_path / "index")
    before = contents(folder)
    with pytest.raises(ConfigError) as refused:
        TantivyIndex(folder)
    assert "BYOK_HOME" in refused.value.hint
    assert contents(folder) == before


@pytest.mark.case("B110")
@pytest.mark.skipif(not Path("/proc").is_mount(), reason="needs a mounted folder")
def test_index_folder_that_is_a_mount_is_refused() -> None:
    with pytest.raises(ConfigError, match="a disk of its own"):
        check_folder(Path("/proc"))


@pytest.mark.case("B110")
def test_index_folder_keeps_foreign_files_through_damage_and_clearing(
    tmp_path: Path,
) -> None:
    folder = make_index(tmp_path / "index")
    for name, content in FOREIGN.items():
        (folder / name).write_bytes(content)
    (folder / f"{'1' * 32}.idx").mkdir()
    (folder / f"{'2' * 32}.idx").symlink_to(folder / "thesis.tex")
    for _ in range(2):
        index = TantivyIndex(folder)
        index.clear()
        index.add(1, words("a.py", "alpha"))
        index.commit()
        index.close()
        next(folder.glob("*.store")).write_bytes(b"")  # so that it is set aside
    assert TantivyIndex(folder).was_new
    assert {name: (folder / name).read_bytes() for name in FOREIGN} == FOREIGN
    assert (folder / f"{'1' * 32}.idx").is_dir()
    assert (folder / f"{'2' * 32}.idx").is_symlink()


@pytest.mark.case("B110")
def test_index_folder_for_damaged_files_keeps_what_is_there(tmp_path: Path) -> None:
    kept = foreign(tmp_path / "index.corrupt")
    before = contents(kept)
    folder = make_index(tmp_path / "index")
    next(folder.glob("*.store")).write_bytes(b"")
    files = sorted(folder.iterdir())
    with pytest.raises(ConfigError, match=r"index\.corrupt"):
        TantivyIndex(folder)
    assert (contents(kept), sorted(folder.iterdir())) == (before, files)
