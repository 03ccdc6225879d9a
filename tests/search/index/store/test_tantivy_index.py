"""The index by tantivy: large views, other writers, damage, full disks."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
import tantivy

from byok.core.errors import DiskFull, IndexFailed, IndexInUse
from byok.search.index.store.tantivy_index import TantivyIndex
from tests.fakes.disk import fill, mounted
from tests.fakes.segments import harm, make_index, replace
from tests.fakes.stores import ids_of, view, words


@pytest.fixture
def index(tmp_path: Path) -> TantivyIndex:
    return TantivyIndex(tmp_path / "index")


def test_tantivy_search_of_a_large_view_is_repeated_if_hits_are_few(
    index: TantivyIndex,
) -> None:
    """The best 3,200 chunks are all of blobs out of view."""
    index.add(1, words("a.py", *["word word word"] * 3300))
    index.add(2, words("b.py", *["word and many others that make it worse"] * 3400))
    index.commit()
    hits = index.search({"word": 1.0}, view(2, chunks=3400), 100)
    assert ids_of(hits) == [2] * 100


def test_tantivy_second_writer_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = TantivyIndex(folder)
    index.add(1, words("a.py", "alpha"))
    index.commit()
    for _ in range(2):
        with pytest.raises(IndexInUse, match="Another byok"):
            TantivyIndex(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    index.close()
    again = TantivyIndex(folder)
    assert not again.was_new
    assert again.counts() == {1: 1}
    again.close()


def test_tantivy_loses_what_was_not_committed(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    index.add(1, words("a.py", "alpha"))
    index.close()
    index = TantivyIndex(tmp_path)
    assert index.counts() == Counter()
    index.close()


@pytest.mark.case("F25")
def test_tantivy_ignores_the_files_of_a_killed_commit(tmp_path: Path) -> None:
    folder = make_index(tmp_path)
    (segment,) = folder.glob("*.del")
    stem = segment.name.partition(".")[0]
    left = [folder / f"{stem}.{number}.del" for number in range(1, 1000)]
    for file in (*left, folder / f"{'0' * 32}.idx", folder / ".tmpAb3dE9"):
        if file != segment:
            file.write_bytes(b"half")
    index = TantivyIndex(folder)
    index.remove(9)
    index.commit()
    assert 9 not in index.counts()
    assert len(index.counts()) == 57
    index.close()
    assert len(list(folder.glob("*.del"))) == 1
    assert not list(folder.glob(".tmp*"))


@pytest.mark.slow
@pytest.mark.case("F35")
@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_index_is_set_aside_and_made_anew(tmp_path: Path, seed: int) -> None:
    folder = make_index(tmp_path / "index")
    harm(folder, seed)
    index = TantivyIndex(folder)
    if index.was_new:
        assert index.chunks == 0
    else:  # the version in a footer, or white space: nothing was lost
        assert len(index.counts()) == 58
    index.add(99, words("a.py", "alpha"))
    index.commit()
    assert 99 in ids_of(index.search({"alpha": 1.0}, view(*range(100), chunks=0)))
    index.close()


@pytest.mark.case("B113")
def test_an_index_on_a_full_disk_is_not_set_aside(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "2m") as disk:
        folder = make_index(disk / "index")
        index = TantivyIndex(folder)
        fill(disk / "filler")
        with pytest.raises(DiskFull):
            index.clear()
        index.close()
        assert [path.name for path in disk.iterdir() if path.is_dir()] == ["index"]
        (disk / "filler").unlink()
        index = TantivyIndex(folder)
        assert not index.was_new
        assert len(index.counts()) == 58
        index.close()


def _garbage(folder: Path) -> None:
    for file in list(folder.iterdir()):
        replace(file, b"\xff\x00garbage")


def _foreign(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("title", stored=True)
    tantivy.Index(builder.build(), path=str(folder))


@pytest.mark.case("F35")
@pytest.mark.parametrize("harmed", [_garbage, _foreign], ids=["garbage", "foreign"])
def test_one_damaged_index_is_kept_for_a_look(tmp_path: Path, harmed: object) -> None:
    assert callable(harmed)
    for _ in range(2):
        folder = make_index(tmp_path / "index")
        harmed(folder)
        index = TantivyIndex(folder)
        assert index.was_new
        assert index.counts() == Counter()
        index.close()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "index.corrupt"]


@pytest.mark.case("F35")
def test_tantivy_starts_anew_in_an_empty_folder(tmp_path: Path) -> None:
    folder = make_index(tmp_path / "index")
    (folder / "meta.json").unlink()
    index = TantivyIndex(folder)
    assert index.was_new
    assert index.counts() == Counter()
    index.close()


class Panicking:
    """A part of tantivy that ends as its damaged files make it end."""

    class PanicException(BaseException):
        pass

    num_docs = 1

    def __getattr__(self, name: str) -> object:
        def fail(*args: object, **kwargs: object) -> None:
            raise Panicking.PanicException("assertion failed")

        return fail


def test_a_panic_of_tantivy_is_an_ordinary_error(index: TantivyIndex) -> None:
    index.add(1, words("a.py", "alpha"))
    index.commit()
    whole = index._searcher
    index._searcher = Panicking()  # type: ignore[assignment]
    with pytest.raises(IndexFailed, match="damaged"):
        index.search({"alpha": 1.0}, view(1))
    with pytest.raises(IndexFailed, match="damaged"):
        index.counts()
    index._searcher = whole
    index._writer = Panicking()  # type: ignore[assignment]
    with pytest.raises(IndexFailed):
        index.add(2, words("a.py", "alpha"))
    index.add(3, words("a.py", "alpha"))  # by a new writer
    index.commit()
    assert index.counts() == {1: 1, 3: 1}


def test_tantivy_folder_that_vanished_is_an_error_with_a_hint(
    index: TantivyIndex, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(IndexFailed) as caught:
        index.add(1, words("a.py", "alpha"))
        index.commit()
    assert len(str(caught.value)) < 250
    assert "index rebuild" in caught.value.hint
