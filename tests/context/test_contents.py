"""What blobs hold."""

from pathlib import Path

from byok.context.blobs import Upload
from byok.context.versions import blob_name
from tests.fakes.engines import complete, engine, written


async def test_lines_come_from_the_file_while_it_is_that_version(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"a.py": "one\ntwo\n"})
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        [space] = made.workspaces
        [entry] = made.contents.entries(space.ids()).values()
        assert (entry.path, len(entry.spans)) == ("a.py", 1)
        assert made.contents.lines_of(entry) == ["one", "two"]
        (root / "a.py").write_text("three\n")
        assert made.contents.lines_of(entry) is None


async def test_lines_of_an_upload_come_from_the_store(tmp_path: Path) -> None:
    name = blob_name("b.py", b"b = 1\n")
    async with engine(tmp_path / "e") as made:
        await made.uploads.upload([Upload(name, "b.py", b"b = 1\n")])
        found = await made.uploads.resolve("", [name], [])
        [entry] = made.contents.entries(found.view.ids).values()
        assert made.contents.lines_of(entry) == ["b = 1"]


async def test_a_blob_is_read_by_its_name(tmp_path: Path) -> None:
    name = blob_name("b.py", b"a\r\nb\r\n")
    async with engine(tmp_path / "e") as made:
        assert made.contents.text_of(name) is None
        await made.uploads.upload([Upload(name, "b.py", b"a\r\nb\r\n")])
        assert made.contents.text_of(name) == "a\nb\n"


async def test_what_is_no_text_has_no_lines(tmp_path: Path) -> None:
    name = blob_name("b.py", b"\0\0")
    async with engine(tmp_path / "e") as made:
        await made.uploads.upload([Upload(name, "b.py", b"\0\0")])
        found = await made.uploads.resolve("", [name], [])
        [entry] = made.contents.entries(found.view.ids).values()
        assert made.contents.lines_of(entry) is None
