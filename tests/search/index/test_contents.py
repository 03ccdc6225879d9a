"""What blobs hold."""

from pathlib import Path

from byok.core.code_query import Upload
from byok.search.index.types import blob_name
from tests.fakes.engines import complete, engine, written


async def test_contents_come_from_the_file_while_it_is_that_version(
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


async def test_contents_of_a_blob_are_read_by_its_name(tmp_path: Path) -> None:
    name = blob_name("b.py", b"a\r\nb\r\n")
    async with engine(tmp_path / "e") as made:
        assert made.contents.text_of(name) is None
        await made.uploads.upload([Upload(name, "b.py", b"a\r\nb\r\n")])
        assert made.contents.text_of(name) == "a\nb\n"


async def test_contents_that_are_no_text_have_no_lines(tmp_path: Path) -> None:
    name = blob_name("b.py", b"\0\0")
    async with engine(tmp_path / "e") as made:
        await made.uploads.upload([Upload(name, "b.py", b"\0\0")])
        found = await made.uploads.resolve("", [name], [])
        [entry] = made.contents.entries(found.view.ids).values()
        assert made.contents.lines_of(entry) is None


async def test_contents_of_a_secret_file_are_never_shown(
    tmp_path: Path,
) -> None:
    name = blob_name(".env", b"KEY=1\n")
    async with engine(tmp_path / "e", allow_secret=[".env"]) as made:
        await made.uploads.upload([Upload(name, ".env", b"KEY=1\n")])
        assert made.contents.text_of(name) == "KEY=1\n"
    async with engine(tmp_path / "e") as made:
        [known] = made.contents.find_entries([name]).values()
        [entry] = made.contents.entries([known.id]).values()
        assert made.contents.is_private(entry)
        assert made.contents.content_of(entry) is None
        assert made.contents.text_of(name) is None
