"""The files in the user's folder of prompts: which are read, and as what text."""

import os
from pathlib import Path

import pytest

from byok.core.prompts.own_files import MAX_FILE_BYTES, read_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "prompts"
    made.mkdir(mode=0o700)
    return made


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfName it.\r\nShortly.\r\n", "Name it.\nShortly.\n"),
        ("Benenne es kürzer. 命名".encode(), "Benenne es kürzer. 命名"),
        (b"<!-- none -->", "<!-- none -->"),
        (b"x" * MAX_FILE_BYTES, "x" * MAX_FILE_BYTES),
    ],
    ids=["bom and crlf", "other letters", "a comment", "the largest"],
)
def test_a_file_is_read_as_text_of_any_editor(
    folder: Path, content: bytes, text: str
) -> None:
    (folder / "title.md").write_bytes(content)
    assert read_folder(folder) == ({"title": text}, [])


@pytest.mark.parametrize("name", [".title.md.swp", "title.md~", "#title.md#", ".git"])
def test_hidden_files_and_copies_of_editors_are_left_alone(
    folder: Path, name: str
) -> None:
    (folder / name).write_text("x")
    assert read_folder(folder) == ({}, [])


def test_the_folder_may_be_a_link_and_have_links_inside(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "title.md").write_text("Name it.")
    (folder / "commit.md").symlink_to("title.md")
    (tmp_path / "link").symlink_to(folder)
    assert read_folder(tmp_path / "link") == (
        {"title": "Name it.", "commit": "Name it."},
        [],
    )


def _file(place: Path) -> None:
    place.write_text("x")


def _dangling(place: Path) -> None:
    place.symlink_to("nowhere")


def _circle(place: Path) -> None:
    place.symlink_to(place.name)


def _open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (_file, "p: it cannot be read (Not a directory)"),
        (_dangling, "p: it cannot be read (No such file or directory)"),
        (_circle, "p: it cannot be read ("),
        (_open_to_all, "p: it can be changed by other users. Run: chmod go-w"),
    ],
    ids=["a file", "a dangling link", "a circle", "open to all"],
)
def test_what_is_no_folder_of_the_user_is_told(
    tmp_path: Path, make: object, told: str
) -> None:
    assert callable(make)
    make(tmp_path / "p")
    texts, (problem,) = read_folder(tmp_path / "p")
    assert texts == {}
    assert str(problem).startswith(told)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    (folder / "title.md").write_text("x")
    os.chown(folder / "title.md", 65534, 65534)
    _, (problem,) = read_folder(folder)
    assert str(problem).startswith("title.md: it belongs to another user.")


def test_many_files_are_told_in_few_lines(folder: Path) -> None:
    for number in range(300):
        (folder / f"{number}.md").touch()
    texts, problems = read_folder(folder)
    assert texts == {}
    assert "more than 200 files" in problems[0].problem
    assert len(problems) == 201


def test_a_file_that_is_removed_while_the_folder_is_read_is_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("commit", "title"):
        (folder / f"{name}.md").write_text("x")
    resolve = Path.resolve

    def remove(path: Path, strict: bool = False) -> Path:
        if path.name == "title.md":
            path.unlink()
        return resolve(path, strict)

    monkeypatch.setattr(Path, "resolve", remove)
    assert read_folder(folder) == ({"commit": "x"}, [])


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "title.md"
    file.write_text("x")
    opens = os.open

    def replace(path: Path, flags: int) -> int:
        file.unlink()
        os.mkfifo(file)
        return opens(path, flags)

    monkeypatch.setattr(os, "open", replace)
    _, (problem,) = read_folder(folder)
    assert str(problem).startswith("title.md: it is no file.")
