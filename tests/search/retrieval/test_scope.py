"""What a question is about."""

from pathlib import Path

from byok.core.code_query import BlobNames, Upload
from byok.search.index.contents import Entry
from byok.search.index.types import blob_name
from byok.search.retrieval.scope import empty_answer, select_scope
from tests.fakes.engines import complete, engine, written


async def test_scope_paths_of_several_workspaces_begin_with_their_names(
    tmp_path: Path,
) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        written(root, {"a.py": f"x = {root.name!r}\n"})
    async with engine(tmp_path / "e", *roots) as made:
        await complete(made)
        both = await select_scope(made, BlobNames(), list(map(str, roots)))
        alone = await select_scope(made, BlobNames(), [str(roots[1])])
        [second] = made.contents.entries(alone.view.ids).values()
    assert both.path_of(second) == "two/a.py"
    assert both.blob_of("two/a.py") == second.blob_id
    assert both.blob_of("a.py") is None
    assert alone.path_of(second) == "a.py"
    assert alone.blob_of("a.py") == second.blob_id
    assert alone.path_of(Entry(0, "gone.py", b"")) == "gone.py"


async def test_named_blobs_are_the_scope_and_what_is_missing_is_told(
    tmp_path: Path,
) -> None:
    root = tmp_path / "one"
    written(root, {"a.py": "x = 1\n"})
    known, unknown = blob_name("b.py", b"b"), bytes(32)
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        await made.uploads.upload([Upload(known, "b.py", b"b")])
        found = await select_scope(made, BlobNames("", (known, unknown)), [])
        lost = await select_scope(made, BlobNames("none"), [])
    assert (found.named, len(found.view.ids), list(found.workspaces)) == (True, 1, [])
    assert found.unknown == [unknown]
    assert "1 files of this workspace were not searched" in found.notes[0]
    assert not lost.checkpoint_found
    assert "unknown to byok" in empty_answer(lost)
