"""The message in place of what was left out can be told from all others."""

import pytest

from byok.core.chat import Message, Role, TextPart
from byok.upstream.window.transcript import summary_message, summary_of, without_summary
from tests.fakes.histories import PNG, user

TASK = (TextPart("Port it."), PNG)


@pytest.mark.parametrize("task", [(), TASK])
@pytest.mark.parametrize("summary", ["Done so far.", "a\n\nb [x]", "\n s \n"])
def test_a_summary_is_found_again(summary: str, task: tuple[TextPart, ...]) -> None:
    message = summary_message(summary, task)
    assert message.role is Role.USER
    assert summary_of(message) == summary.strip()
    assert without_summary(message) == task


def test_the_request_follows_the_summary_word_for_word() -> None:
    first, *rest = summary_message("Done.", TASK).parts
    assert isinstance(first, TextPart)
    assert first.text.index("Done.") < first.text.index("word for word")
    assert tuple(rest) == TASK
    alone = summary_message("Done.", ()).parts[0]
    assert isinstance(alone, TextPart)
    assert "word for word" not in alone.text


@pytest.mark.parametrize(
    "message",
    [
        user("Hi?"),
        user("", "a"),
        Message(Role.USER, (PNG, TextPart("a"))),
        Message(Role.USER, ()),
        Message(Role.ASSISTANT, summary_message("s", ()).parts),
    ],
)
def test_other_messages_hold_no_summary(message: Message) -> None:
    assert summary_of(message) == ""
    assert without_summary(message) == message.parts
