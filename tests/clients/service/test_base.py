"""What a service runs, and the mark by which byok knows its own files."""

from pathlib import Path

import pytest

from byok.clients.service.base import find_mark, mark_of
from byok.core.errors import ConfigError
from tests.fakes.launches import make_launch


def test_command_is_this_interpreter_and_imports_nothing_of_the_folder() -> None:
    assert make_launch().command("serve") == [
        *("/opt/plain/python", "-P", "-m", "byok", "serve"),
        *("--config", "/opt/plain/config.toml"),
    ]


@pytest.mark.parametrize("name", ["a\nExecStart=x", "a\x00b", "\x1b[31m", "\udcff"])
def test_path_that_no_file_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no service can be given"):
        make_launch(name)


def test_mark_names_one_home_and_is_found_in_a_file() -> None:
    mark = mark_of(Path("/home/a"))
    assert mark != mark_of(Path("/home/b"))
    assert find_mark(f"# {mark}\n[Unit]\n") == mark
    assert mark.isascii()
    assert "/home" not in mark


@pytest.mark.parametrize(
    "content", ["", "[Unit]\n", "Written by byok service install", "byok (0123)"]
)
def test_file_of_somebody_else_has_no_mark(content: str) -> None:
    assert find_mark(content) == ""
