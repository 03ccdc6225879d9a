"""A file is changed as a whole; after any failure it is as it was."""

from typing import Any

import pytest

from byok.core.events import FinishReason
from byok.protocols.augment.prompts.edit import decode_edit_file
from tests.fakes.jobs import PLAIN, STATE, events, whole

BODY: dict[str, Any] = {
    "file_path": "a.py",
    "edit_summary": "rename",
    "detailed_edit_description": "x becomes y",
    "file_contents": "x = 1\r\n",
}


def test_the_new_contents_have_the_files_line_ends() -> None:
    found = whole(decode_edit_file, BODY, events("```py\ny = 1\nz\n```"))
    assert found == {"modified_file_contents": "y = 1\r\nz\r\n", "is_error": False}


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        ("", FinishReason.STOP),
        ("y = ", FinishReason.LENGTH),
        ("y = ", FinishReason.CONTENT_FILTER),
    ],
)
def test_edit_file_failure_leaves_the_contents_unchanged(
    answer: str, finish: FinishReason
) -> None:
    found = whole(decode_edit_file, BODY, events(answer, finish=finish))
    assert found["modified_file_contents"] == "x = 1\r\n"
    assert found["is_error"] is True
    assert found["error_message"]


def test_an_empty_file_is_a_file() -> None:
    body = {**BODY, "file_contents": ""}
    found = whole(decode_edit_file, body, events("y\n"))
    assert found == {"modified_file_contents": "y\n", "is_error": False}


@pytest.mark.parametrize(
    ("fields", "contents"),
    [
        ({"file_contents": None}, ""),
        ({"file_contents": 7}, ""),
        ({"edit_summary": "", "detailed_edit_description": None}, "x = 1\r\n"),
    ],
)
def test_edit_file_without_its_fields_asks_nobody(
    fields: dict[str, Any], contents: str
) -> None:
    body = {**BODY, **fields}
    assert decode_edit_file(body, PLAIN, STATE).chat.messages == ()
    found = whole(decode_edit_file, body, [])
    assert (found["modified_file_contents"], found["is_error"]) == (contents, True)
    assert "is missing" in found["error_message"]


OLD = "def f():\n    return 1\n"
NEW = "def f():\n    return 2\n"
FENCED = f"```python\n{NEW}```"


@pytest.mark.parametrize(
    "answer",
    [
        f"Here is the updated file:\n\n{FENCED}\n\nI changed `f`.",
        f"x -> y, as f(x)=2\n{FENCED}\nx -> y\n",
    ],
)
def test_a_models_remarks_never_reach_the_file(answer: str) -> None:
    body = {**BODY, "file_contents": OLD}
    found = whole(decode_edit_file, body, events(answer))
    assert found == {"modified_file_contents": NEW, "is_error": False}


@pytest.mark.parametrize(
    "answer",
    [
        "I have updated the function as you described.",
        f"x -> y, as f(x)=2\n{FENCED}\nand\n{FENCED}",
    ],
)
@pytest.mark.parametrize("contents", [OLD, OLD * 3])
def test_words_in_place_of_the_file_leave_it_as_it_was(
    answer: str, contents: str
) -> None:
    body = {**BODY, "file_contents": contents}
    found = whole(decode_edit_file, body, events(answer))
    assert found["modified_file_contents"] == contents
    assert found["is_error"] is True
    assert "nothing was changed" in found["error_message"]


def test_a_file_is_not_replaced_by_one_without_a_line_of_it() -> None:
    contents = "# Notes\n\nOne.\n\nTwo.\n"
    body = {**BODY, "file_path": "notes.md", "file_contents": contents}
    found = whole(decode_edit_file, body, events("I added a third note to it."))
    assert (found["modified_file_contents"], found["is_error"]) == (contents, True)
    answer = contents + "\nThree:\n\n```sh\nls\n```\n"
    found = whole(decode_edit_file, body, events(answer))
    assert found == {"modified_file_contents": answer, "is_error": False}
