"""The lexical index: what is added is found, what is removed is not; damage."""

import random
import shutil
import threading
from collections import Counter
from pathlib import Path

import pytest
import tantivy

from byok.index.store.index_errors import DiskFull, IndexFailed, IndexInUse
from byok.index.store.lexical import (
    ChunkScore,
    LexicalIndex,
    View,
    remove_all,
)
from byok.index.types import Document, Prepared, Span
from tests.fakes.disk import fill, mounted
from tests.fakes.stores import words
from tests.index.store.test_segments import harm, make_index, replace


def view(*ids: int, chunks: int = 0, key: str = "") -> View:
    return View(key or str(ids), frozenset(ids), chunks)


def ids_of(hits: list[ChunkScore]) -> list[int]:
    return [hit.blob_id for hit in hits]


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    return LexicalIndex(tmp_path / "index")


def test_chunks_are_found_by_word_after_a_commit(index: LexicalIndex) -> None:
    assert index.was_new
    index.add(1, words("a.py", "alpha beta", "gamma"))
    assert index.search({"gamma": 1.0}, view(1)) == []
    index.commit()
    (hit,) = index.search({"gamma": 1.0}, view(1))
    assert (hit.blob_id, hit.ordinal) == (1, 1)
    assert hit.score > 0
    assert index.chunks == 2


def test_weights_and_fields_count(index: LexicalIndex) -> None:
    span = (Span(0, 0, 1),)
    for blob_id, document, path in (
        (1, Document("word filler", "other"), "path"),
        (2, Document("other filler", "word"), "path"),
        (3, Document("other filler", "other"), "word"),
    ):
        index.add(blob_id, Prepared(b"", 1, None, span, (document,), path))
    index.commit()
    everything = view(1, 2, 3)
    assert ids_of(index.search({"word": 1.0}, everything)) == [1, 3, 2]
    once, twice = (
        index.search({"word": weight}, everything)[0].score for weight in (1.0, 2.0)
    )
    assert twice == pytest.approx(2 * once)


def test_a_delete_deletes(index: LexicalIndex) -> None:
    for blob_id in (1, 2, 2**40):
        index.add(blob_id, words("a.py", "alpha", "beta"))
    index.commit()
    remove_all(index, [1, 2**40])
    index.commit()
    assert index.counts() == {2: 2}
    assert index.chunks == 2
    assert ids_of(index.search({"alpha": 1.0}, view(1, 2, 2**40))) == [2]


def test_a_delete_takes_what_came_before_it_only(index: LexicalIndex) -> None:
    index.add(1, words("a.py", "old"))
    index.remove(1)
    index.add(1, words("a.py", "new", "newer"))
    index.commit()
    assert index.counts() == {1: 2}
    assert index.search({"old": 1.0}, view(1)) == []


def test_clear_leaves_nothing(index: LexicalIndex) -> None:
    index.add(1, words("a.py", "alpha"))
    index.commit()
    index.add(2, words("b.py", "alpha"))
    index.clear()
    assert index.counts() == Counter()
    index.add(3, words("b.py", "alpha"))
    index.commit()
    assert index.counts() == {3: 1}


def test_a_view_gives_the_same_hits_whichever_way_it_is_filtered(
    index: LexicalIndex,
) -> None:
    rng = random.Random(3)
    for blob_id in range(1, 301):
        chunk = " ".join(f"w{rng.randrange(40)}" for _ in range(rng.randrange(1, 30)))
        index.add(blob_id, words(f"f{blob_id}.py", chunk, chunk[::2]))
        if blob_id % 90 == 0:
            index.commit()
    index.commit()
    for share in (0.02, 0.3, 0.6, 1.0):
        ids = rng.sample(range(1, 301), int(300 * share))
        small = view(*ids, chunks=0, key=f"small {share}")
        large = view(*ids, chunks=600, key=f"large {share}")
        for terms in ({"w1": 1.0}, {"w2": 2.0, "w3": 0.5, "nothing": 1.0}):
            for limit in (5, 400):
                both = [index.search(terms, one, limit) for one in (small, large)]
                assert scores(both[0]) == scores(both[1])
                assert len(both[0]) <= limit
                assert {hit.blob_id for hit in both[0]} <= set(ids)


def scores(hits: list[ChunkScore]) -> list[float]:
    """Chunks of equal score may come in any order, the last of them may differ."""
    return [round(hit.score, 4) for hit in hits]


def test_a_large_view_with_few_hits_in_reach_is_searched_again(
    index: LexicalIndex,
) -> None:
    """The best 3,200 chunks are all of blobs out of view."""
    index.add(1, words("a.py", *["word word word"] * 3300))
    index.add(2, words("b.py", *["word and many others that make it worse"] * 3400))
    index.commit()
    hits = index.search({"word": 1.0}, view(2, chunks=3400), 100)
    assert ids_of(hits) == [2] * 100


def test_an_empty_question_and_an_empty_view_find_nothing(index: LexicalIndex) -> None:
    index.add(1, words("a.py", "alpha"))
    index.commit()
    assert index.search({}, view(1)) == []
    assert index.search({"alpha": 1.0}, view()) == []
    assert index.search({"": 1.0}, view(1)) == []


def test_many_views_are_kept_apart(index: LexicalIndex) -> None:
    for blob_id in range(1, 31):
        index.add(blob_id, words("a.py", "alpha"))
    index.commit()
    for _ in range(2):
        for blob_id in range(1, 31):
            assert ids_of(index.search({"alpha": 1.0}, view(blob_id))) == [blob_id]


def test_searching_goes_on_while_another_thread_writes(index: LexicalIndex) -> None:
    done = threading.Event()
    found: list[int] = []

    def search() -> None:
        while not done.is_set():
            found.append(len(index.search({"alpha": 1.0}, view(*range(1, 60)))))

    thread = threading.Thread(target=search)
    thread.start()
    for blob_id in range(1, 60):
        index.add(blob_id, words("a.py", "alpha"))
        if blob_id % 10 == 9:
            index.commit()
    done.set()
    thread.join()
    assert found == sorted(found)


def test_a_second_writer_is_told_and_harms_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = LexicalIndex(folder)
    index.add(1, words("a.py", "alpha"))
    index.commit()
    for _ in range(2):
        with pytest.raises(IndexInUse, match="Another byok"):
            LexicalIndex(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    index.close()
    again = LexicalIndex(folder)
    assert not again.was_new
    assert again.counts() == {1: 1}
    again.close()


def test_what_was_not_committed_is_gone(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.add(1, words("a.py", "alpha"))
    index.close()
    index = LexicalIndex(tmp_path)
    assert index.counts() == Counter()
    index.close()


@pytest.mark.case("F25")
def test_files_of_a_commit_that_was_killed_are_not_in_the_way(tmp_path: Path) -> None:
    folder = make_index(tmp_path)
    (segment,) = folder.glob("*.del")
    stem = segment.name.partition(".")[0]
    left = [folder / f"{stem}.{number}.del" for number in range(1, 1000)]
    for file in (*left, folder / f"{'0' * 32}.idx", folder / ".tmpAb3dE9"):
        if file != segment:
            file.write_bytes(b"half")
    index = LexicalIndex(folder)
    index.remove(9)
    index.commit()
    assert 9 not in index.counts()
    assert len(index.counts()) == 57
    index.close()
    assert len(list(folder.glob("*.del"))) == 1
    assert not list(folder.glob(".tmp*"))


@pytest.mark.case("F35")
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_index_is_set_aside_and_made_anew(tmp_path: Path, seed: int) -> None:
    folder = make_index(tmp_path / "index")
    harm(folder, seed)
    index = LexicalIndex(folder)
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
        index = LexicalIndex(folder)
        fill(disk / "filler")
        with pytest.raises(DiskFull):
            index.clear()
        index.close()
        assert [path.name for path in disk.iterdir() if path.is_dir()] == ["index"]
        (disk / "filler").unlink()
        index = LexicalIndex(folder)
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
        index = LexicalIndex(folder)
        assert index.was_new
        assert index.counts() == Counter()
        index.close()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "index.corrupt"]


@pytest.mark.case("F35")
def test_an_empty_folder_and_one_without_its_list_start_anew(tmp_path: Path) -> None:
    folder = make_index(tmp_path / "index")
    (folder / "meta.json").unlink()
    index = LexicalIndex(folder)
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


def test_a_panic_of_tantivy_is_an_ordinary_error(index: LexicalIndex) -> None:
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


def test_a_folder_that_went_is_an_error_that_says_what_to_do(
    index: LexicalIndex, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(IndexFailed) as caught:
        index.add(1, words("a.py", "alpha"))
        index.commit()
    assert len(str(caught.value)) < 250
    assert "index rebuild" in caught.value.hint
