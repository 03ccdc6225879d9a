"""A file is changed as a whole; after any failure it is as it was."""

from typing import Any

import pytest

from byok.augment.prompts.edit_file import decode
from byok.events import FinishReason
from tests.fakes.jobs import PLAIN, events, ignore, texts, whole

BODY: dict[str, Any] = {
    "file_path": "a.py",
    "edit_summary": "rename",
    "detailed_edit_description": "x becomes y",
    "file_contents": "x = 1\r\n",
}


def test_the_new_contents_have_the_files_line_ends() -> None:
    found = whole(decode, BODY, events("```py\ny = 1\nz\n```"))
    assert found == {"modified_file_contents": "y = 1\r\nz\r\n", "is_error": False}


def test_the_model_sees_the_file_and_the_change() -> None:
    shown = texts(decode(BODY, PLAIN, ignore).chat)
    for part in ("a.py", "x = 1", "rename", "x becomes y"):
        assert part in shown


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        ("", FinishReason.STOP),
        ("y = ", FinishReason.LENGTH),
        ("y = ", FinishReason.CONTENT_FILTER),
    ],
)
def test_after_a_failure_the_contents_are_unchanged(
    answer: str, finish: FinishReason
) -> None:
    found = whole(decode, BODY, events(answer, finish=finish))
    assert found["modified_file_contents"] == "x = 1\r\n"
    assert found["is_error"] is True
    assert found["error_message"]


def test_an_empty_file_is_a_file() -> None:
    body = {**BODY, "file_contents": ""}
    found = whole(decode, body, events("y\n"))
    assert found == {"modified_file_contents": "y\n", "is_error": False}


@pytest.mark.parametrize(
    ("fields", "contents"),
    [
        ({"file_contents": None}, ""),
        ({"file_contents": 7}, ""),
        ({"edit_summary": "", "detailed_edit_description": None}, "x = 1\r\n"),
    ],
)
def test_what_is_missing_is_said_and_nobody_asked(
    fields: dict[str, Any], contents: str
) -> None:
    body = {**BODY, **fields}
    assert decode(body, PLAIN, ignore).chat.messages == ()
    found = whole(decode, body, [])
    assert (found["modified_file_contents"], found["is_error"]) == (contents, True)
    assert "is missing" in found["error_message"]
