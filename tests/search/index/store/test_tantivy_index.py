"""The index by tantivy: what is found, other writers, damage, full disks."""

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tantivy

from byok.core.errors import ConfigError, DiskFull, IndexFailed, IndexInUse, NotReady
from byok.search.index.store.chunk_index import (
    ChunkScore,
    explain_failure,
    translate_errors,
)
from byok.search.index.store.tantivy_index import (
    TantivyIndex,
    append_fields,
    check_folder,
    find_damaged,
    lacks_fields,
)
from byok.search.index.types import Document, Prepared, Span
from tests.fakes.disk import fill, mounted
from tests.fakes.stores import (
    DAMAGES,
    harm,
    ids_of,
    make_index,
    replace,
    view,
    words,
    write_old_index,
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TantivyIndex]:
    made = TantivyIndex(tmp_path / "index")
    yield made
    made.close()


def test_lexical_index_weights_and_fields_count(index: TantivyIndex) -> None:
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


def test_lexical_index_knows_how_common_a_word_is(index: TantivyIndex) -> None:
    assert index.share_of("word") == 0.0
    for blob_id, chunks in enumerate((["word word", "rare"], ["word"], ["-"]), 1):
        index.add(blob_id, words(f"{blob_id}.py", *chunks))
    index.commit()
    assert [index.share_of(term) for term in ("word", "rare", "no")] == [0.5, 0.25, 0]


def test_lexical_index_finds_chunks_by_mark_with_the_highest_weight(
    index: TantivyIndex,
) -> None:
    for blob_id, borne in enumerate((":t:Foo :T:foo", ":f:foo", ":t:Bar", ""), 1):
        documents = (Document(":t:Foo foo", "foo", borne),)
        prepared = Prepared(b"", 1, None, (Span(0, 0, 1),), documents, "foo")
        index.add(blob_id, prepared)
    index.commit()
    marks = {":t:Foo": 1.0, ":T:foo": 0.5, ":f:foo": 0.25}
    expected = [ChunkScore(1, 0, 1.0), ChunkScore(2, 0, 0.25)]
    assert index.find_marked(marks, view(1, 2, 3, 4)) == expected
    assert index.find_marked(marks, view(1, 2, 3, 4, chunks=4)) == expected
    assert index.find_marked(marks, view(1, 2, 3, 4), 1) == expected[:1]
    assert index.find_marked(marks, view(2, 3)) == expected[1:]
    assert index.find_marked(marks, view()) == []
    assert index.find_marked({}, view(1)) == []


def test_lexical_index_filters_a_view_in_either_way_alike(
    index: TantivyIndex,
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


def test_tantivy_search_of_a_large_view_is_repeated_if_hits_are_few(
    index: TantivyIndex,
) -> None:
    """The best 3,200 chunks are all of blobs out of view."""
    index.add(1, words("a.py", *["word word word"] * 3300))
    index.add(2, words("b.py", *["word and many others that make it worse"] * 3400))
    index.commit()
    hits = index.search({"word": 1.0}, view(2, chunks=3400), 100)
    assert ids_of(hits) == [2] * 100


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
@pytest.mark.parametrize("seed", range(8))
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


# What the errors of the lexical index say


@pytest.mark.parametrize("number", [28, 112])
def test_index_error_of_a_full_disk_says_so(number: int) -> None:
    with pytest.raises(DiskFull) as caught, translate_errors():
        raise ValueError(f"An IO error occurred: 'No space (os error {number})'")
    assert (caught.value.status, caught.value.code) == (507, "storage_full")
    with pytest.raises(IndexFailed) as other, translate_errors():
        raise ValueError("An IO error occurred: 'Input/output error (os error 5)'")
    assert other.value.status == 503


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "The disk is full"),
        (sqlite3.OperationalError("database or disk is full"), "The disk is full"),
        (sqlite3.OperationalError("disk I/O error"), "The index cannot be used: disk"),
        (RuntimeError("no process"), "The index cannot be used: no process."),
        (NotReady("Wait.", hint="A minute."), "Wait. A minute."),
    ],
    ids=str,
)
def test_explanation_of_a_failure_names_no_class(error: Exception, told: str) -> None:
    said = explain_failure(error).sentence
    assert said.startswith(told)
    assert type(error).__name__ not in said


# Indexes of older versions get the fields that came later, and lose nothing


EVERYTHING = view(*range(1, 1000), chunks=0)
OLD = [n for n in range(1, 61) if n != 3]


def old_index(folder: Path) -> Path:
    """Write an old index of 59 blobs in three segments."""
    rng = random.Random(5)
    texts = {n: [" ".join(f"w{rng.randrange(20)}" for _ in range(30))] for n in OLD}
    write_old_index(folder, texts)
    return folder


def marked(path: str, *marks: str) -> Prepared:
    """Return a file of one chunk with marks."""
    return Prepared(
        b"", 1, None, (Span(0, 0, 1),), (Document("word", "", " ".join(marks)),), path
    )


def test_an_old_index_answers_as_before_and_takes_new_documents(
    tmp_path: Path,
) -> None:
    folder = old_index(tmp_path / "index")
    assert lacks_fields(folder)
    plain = tantivy.Index.open(str(folder))
    query = tantivy.Query.term_query(plain.schema, "body", "w3")
    before = [round(score, 4) for score, _ in plain.searcher().search(query, 99).hits]
    del plain

    index = TantivyIndex(folder)
    assert not index.was_new
    assert not lacks_fields(folder)
    assert index.counts() == dict.fromkeys(OLD, 1)
    hits = index.search({"w3": 1.0}, EVERYTHING)
    assert [round(hit.score, 4) for hit in hits] == before
    assert index.find_marked({":t:Foo": 1.0}, EVERYTHING) == []
    index.add(100, marked("a", ":t:Foo", ":T:foo"))
    index.commit()
    assert ids_of(index.find_marked({":t:Foo": 1.0}, EVERYTHING)) == [100]
    index.close()
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_an_old_index_is_merged_with_new_documents(tmp_path: Path) -> None:
    folder = old_index(tmp_path / "index")
    index = TantivyIndex(folder)
    for blob_id in range(100, 400):
        index.add(blob_id, marked("a", f":t:Foo{blob_id % 7}"))
        if blob_id % 10 == 0:
            index.commit()
    for blob_id in range(1, 60):  # as each is indexed again
        index.remove(blob_id)
        index.add(blob_id, marked("a", ":t:Foo9"))
    index.commit()
    index.close()  # waits for merges
    index = TantivyIndex(folder)
    assert len(list(folder.glob("*.idx"))) < 10
    assert index.counts() == dict.fromkeys([*range(1, 61), *range(100, 400)], 1)
    assert sorted(ids_of(index.find_marked({":t:Foo9": 1.0}, EVERYTHING))) == [
        *range(1, 60)
    ]
    expected = [blob_id for blob_id in range(100, 400) if blob_id % 7 == 3]
    assert sorted(ids_of(index.find_marked({":t:Foo3": 1.0}, EVERYTHING))) == expected
    assert not index.is_damaged
    index.close()


def test_a_kill_while_fields_are_appended_leaves_one_form_or_the_other(
    tmp_path: Path,
) -> None:
    folder = old_index(tmp_path / "index")
    left = folder / ".meta.json.abcd1234"
    left.write_bytes(b"half")
    TantivyIndex(folder).close()
    index = TantivyIndex(folder)
    assert len(index.counts()) == 59
    index.close()


def test_fields_are_not_appended_while_another_process_writes(tmp_path: Path) -> None:
    folder = old_index(tmp_path / "index")
    holder = tantivy.Index.open(str(folder)).writer(30_000_000, 1)
    with pytest.raises(IndexInUse):
        TantivyIndex(folder)
    assert lacks_fields(folder)
    holder.wait_merging_threads()
    TantivyIndex(folder).close()
    assert not lacks_fields(folder)


BROKEN = [b"", b"junk", b"{}", b'{"schema": [1]}', b"[]", b'{"segments": 1}', b"\xff"]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_list_of_segments_is_damage_and_gets_no_fields(
    tmp_path: Path, content: bytes
) -> None:
    make_index(tmp_path)
    (tmp_path / "meta.json").write_bytes(content)
    assert find_damaged(tmp_path) == "meta.json"
    assert not lacks_fields(tmp_path)
    append_fields(tmp_path)
    assert (tmp_path / "meta.json").read_bytes() == content


# Damage is seen before anything is read; foreign files are never touched


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


def cut(file: Path) -> None:
    """Leave nothing of a file; who has the former one in memory keeps that."""
    file.unlink()
    file.write_bytes(b"")


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
        cut(next(folder.glob("*.store")))  # so that it is set aside
    assert TantivyIndex(folder).was_new
    assert {name: (folder / name).read_bytes() for name in FOREIGN} == FOREIGN
    assert (folder / f"{'1' * 32}.idx").is_dir()
    assert (folder / f"{'2' * 32}.idx").is_symlink()


@pytest.mark.case("B110")
def test_index_folder_for_damaged_files_keeps_what_is_there(tmp_path: Path) -> None:
    kept = foreign(tmp_path / "index.corrupt")
    before = contents(kept)
    folder = make_index(tmp_path / "index")
    cut(next(folder.glob("*.store")))
    files = sorted(folder.iterdir())
    with pytest.raises(ConfigError, match=r"index\.corrupt"):
        TantivyIndex(folder)
    assert (contents(kept), sorted(folder.iterdir())) == (before, files)
