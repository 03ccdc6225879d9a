"""The tools of a client: what they answer, and what they refuse."""

from typing import Any

import pytest

from byok.trials.tools import TOOLS, run_tool
from byok.trials.trial_files import BadArguments, ToolFailed, TrialFiles


@pytest.fixture
def workspace() -> TrialFiles:
    files = {"a.py": "one\ntwo\nTwo\n", "lib/b.py": "b = 1\n", "empty.py": ""}
    return TrialFiles(files)


def call(workspace: TrialFiles, tool: str, **arguments: Any) -> str:
    return run_tool(TOOLS[tool], workspace, arguments)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({}, "a.py, lines 1 to 3 of 3:\n     1\tone\n     2\ttwo\n     3\tTwo\n"),
        (
            {"view_range": [2, -1]},
            "a.py, lines 2 to 3 of 3:\n     2\ttwo\n     3\tTwo\n",
        ),
        ({"view_range": [1, 99]}, "a.py, lines 1 to 3 of 3:"),
        (
            {"search_query_regex": "^t"},
            "a.py, 2 matching lines:\n     2\ttwo\n     3\t",
        ),
        (
            {"search_query_regex": "^t", "case_sensitive": True},
            "a.py, 1 matching lines:\n     2\ttwo\n",
        ),
    ],
)
def test_view_shows_lines_with_numbers(
    workspace: TrialFiles, arguments: dict[str, Any], shown: str
) -> None:
    text = call(workspace, "view", path="a.py", type="file", **arguments)
    assert text.startswith(shown)


def test_view_shows_folders_and_empty_files(workspace: TrialFiles) -> None:
    assert call(workspace, "view", path="lib", type="directory") == "lib/b.py\n"
    assert "of 0" in call(workspace, "view", path="empty.py", type="file")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"path": "no.py", "type": "file"}, ToolFailed),
        ({"path": "lib", "type": "file"}, ToolFailed),
        ({"path": "a.py", "type": "directory"}, ToolFailed),
        ({"path": "../../etc/passwd", "type": "file"}, ToolFailed),
        ({"path": "a.py", "type": "link"}, BadArguments),
        ({"path": "a.py", "type": "file", "view_range": [1]}, BadArguments),
        ({"path": "a.py", "type": "file", "view_range": ["1", "2"]}, BadArguments),
        ({"path": "a.py", "type": "file", "view_range": [3, 2]}, ToolFailed),
        ({"path": "a.py", "type": "file", "view_range": [0, 2]}, ToolFailed),
        ({"path": "a.py", "type": "file", "search_query_regex": "("}, ToolFailed),
    ],
)
def test_view_refuses(
    workspace: TrialFiles, arguments: dict[str, Any], kind: type[ToolFailed]
) -> None:
    with pytest.raises(ToolFailed) as caught:
        call(workspace, "view", **arguments)
    assert type(caught.value) is kind


def test_a_pattern_of_a_model_takes_linear_time(workspace: TrialFiles) -> None:
    workspace.write("long.py", "a" * 60_000)
    pattern = "(a+)+$b|(a|aa)+c"
    found = call(
        workspace, "view", path="long.py", type="file", search_query_regex=pattern
    )
    assert "0 matching" in found


def test_a_text_is_replaced_and_the_new_lines_are_shown(workspace: TrialFiles) -> None:
    told = call(
        workspace,
        "str-replace-editor",
        command="str_replace",
        path="a.py",
        old_str_1="two",
        new_str_1="2\n2.5",
        old_str_2="one\n",
        new_str_2="1\n",
    )
    assert workspace.files["a.py"] == "1\n2\n2.5\nTwo\n"
    assert "     3\t2.5\n" in told


def test_lines_are_inserted(workspace: TrialFiles) -> None:
    arguments = {"path": "a.py", "insert_line_1": 0, "new_str_1": "zero"}
    call(workspace, "str-replace-editor", command="insert", **arguments)
    assert workspace.files["a.py"] == "zero\none\ntwo\nTwo\n"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"command": "str_replace"}, BadArguments),
        ({"command": "str_replace", "old_str_1": "one"}, BadArguments),
        ({"command": "str_replace", "old_str_2": 1, "new_str_2": "x"}, BadArguments),
        ({"command": "insert", "new_str_1": "x"}, BadArguments),
        ({"command": "view"}, BadArguments),
        ({"command": "str_replace", "old_str_1": "x", "new_str_1": "y"}, ToolFailed),
        ({"command": "insert", "insert_line_1": 9, "new_str_1": "y"}, ToolFailed),
        (
            {"command": "str_replace", "old_str_1": "one", "new_str_1": "x" * 70_000},
            ToolFailed,
        ),
    ],
)
def test_an_edit_that_cannot_be_made_changes_nothing(
    workspace: TrialFiles, arguments: dict[str, Any], kind: type[ToolFailed]
) -> None:
    before = workspace.files
    with pytest.raises(ToolFailed) as caught:
        call(workspace, "str-replace-editor", path="a.py", **arguments)
    assert type(caught.value) is kind
    assert workspace.files == before


@pytest.mark.parametrize(
    ("more", "text"),
    [({}, "x\n"), ({"add_last_line_newline": False}, "x")],
)
def test_a_new_file_is_saved(
    workspace: TrialFiles, more: dict[str, Any], text: str
) -> None:
    call(workspace, "save-file", path="new/c.py", file_content="x", **more)
    assert workspace.files["new/c.py"] == text


def test_a_file_that_exists_is_not_written_anew(workspace: TrialFiles) -> None:
    with pytest.raises(ToolFailed, match="str-replace-editor"):
        call(workspace, "save-file", path="./a.py", file_content="x")
    assert workspace.files["a.py"].startswith("one")


def test_code_is_found(workspace: TrialFiles) -> None:
    text = call(workspace, "codebase-retrieval", information_request="where is two")
    assert "Path: a.py\n" in text
