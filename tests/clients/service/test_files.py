"""Files of a service: only byok's own are replaced or removed."""

import os
from pathlib import Path

import pytest

from byok.clients.service.base import ServiceFile, mark_of
from byok.clients.service.control import read_file, read_mark, remove_files, write_files
from byok.core.errors import ConfigError

MARK = mark_of(Path("/state"))
OURS = f"# {MARK}\n[Unit]\n"


def test_files_are_written_replaced_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "byok.service"
    for content in (OURS, OURS + "Description=x\n"):
        write_files([ServiceFile(path, content)])
        assert (read_file(path), read_mark(path)) == (content, MARK)
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    assert remove_files([path, tmp_path / "none"]) == [path]
    assert list(path.parent.iterdir()) == []
    assert remove_files([path]) == []


def test_file_in_another_encoding_is_known_again(tmp_path: Path) -> None:
    path = tmp_path / "task.xml"
    write_files([ServiceFile(path, OURS, "utf-16")])
    assert path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff")
    assert read_mark(path) == MARK


@pytest.mark.parametrize("content", ["[Unit]\n", "", "x" * 70_000 + OURS])
def test_file_of_somebody_else_stays_and_so_does_the_rest(
    content: str, tmp_path: Path
) -> None:
    own, foreign = tmp_path / "byok.socket", tmp_path / "byok.service"
    own.write_text(OURS)
    foreign.write_text(content)
    with pytest.raises(ConfigError, match=r"byok\.service was not written by byok"):
        write_files([ServiceFile(own, "new"), ServiceFile(foreign, "new")])
    with pytest.raises(ConfigError):
        remove_files([own, foreign])
    assert (own.read_text(), foreign.read_text()) == (OURS, content)


@pytest.mark.skipif(os.name != "posix", reason="links and FIFOs")
@pytest.mark.parametrize("kind", ["link", "dangling", "FIFO", "folder"])
def test_what_is_no_plain_file_stays(kind: str, tmp_path: Path) -> None:
    path, target = tmp_path / "byok.service", tmp_path / "target"
    match kind:
        case "link":
            target.write_text(OURS)
            path.symlink_to(target)
        case "dangling":
            path.symlink_to(target)
        case "FIFO":
            os.mkfifo(path)
        case _:
            path.mkdir()
    with pytest.raises(ConfigError, match="was not written by byok"):
        write_files([ServiceFile(path, "new")])
    with pytest.raises(ConfigError):
        remove_files([path])
    assert os.path.lexists(path)
    assert not target.exists() or target.read_text() == OURS
