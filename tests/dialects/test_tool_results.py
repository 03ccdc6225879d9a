"""Results as one string each, and their pictures in the user's message behind them."""

import pytest

from byok.core.chat import Message, Part, Role, TextPart, ToolCall, ToolResult
from byok.dialects.safe_names import move_images, result_text
from tests.fakes.histories import PNG


@pytest.mark.parametrize(
    ("content", "is_error", "written"),
    [
        ("found", False, "found"),
        ("", False, "(no output)"),
        (" \n", False, "(no output)"),
        ("no such file", True, "ERROR: no such file"),
        ("", True, "ERROR: (no output)"),
        ("Error: no", True, "Error: no"),
        (" FAILED x", True, " FAILED x"),
        ("Traceback (most", True, "Traceback (most"),
        ("error", False, "error"),
    ],
)
def test_a_result_is_one_text_that_tells_an_error(
    content: str, is_error: bool, written: str
) -> None:
    assert result_text(ToolResult("a", "view", content, is_error)) == written


CALLS = Message(Role.ASSISTANT, (ToolCall("a", "view", "{}"),))
ANSWER = Message(Role.ASSISTANT, (TextPart("Ok."),))


def result(call_id: str, pictures: int = 0) -> Message:
    images = (PNG,) * pictures
    return Message(Role.TOOL, (ToolResult(call_id, "view", "ok", images=images),))


def user(*parts: Part | str) -> Message:
    made = (TextPart(p) if isinstance(p, str) else p for p in parts)
    return Message(Role.USER, tuple(made))


ONE = ("Image 1, output of view (a):", PNG)


@pytest.mark.parametrize(
    ("messages", "moved"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([CALLS, result("a"), user("x")], [CALLS, result("a"), user("x")],
                     id="no pictures"),
        pytest.param([result("a", 1), result("b", 2), user("So?")],
                     [result("a"), result("b"),
                      user(*ONE, "Image 1, output of view (b):", PNG,
                           "Image 2, output of view (b):", PNG, "So?")],
                     id="behind all results, before the words"),
        pytest.param([result("a", 1), ANSWER, user("So?")],
                     [result("a"), user(*ONE), ANSWER, user("So?")],
                     id="no words"),
        pytest.param([result("a", 1)], [result("a"), user(*ONE)], id="at the end"),
    ],
)  # fmt: skip
def test_pictures_follow_all_results_with_a_line_of_their_own(
    messages: list[Message], moved: list[Message]
) -> None:
    assert list(move_images(messages)) == moved
