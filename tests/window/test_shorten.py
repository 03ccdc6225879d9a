"""Only the middle goes, and only of what is old: results and pictures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.chat import (
    ContextPart,
    ImagePart,
    Message,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from byok.truncate import LEFT_OUT
from byok.window.shorten import (
    LEVELS,
    NO_IMAGE,
    less_context,
    shorten,
    shorter_system,
    without_context,
)
from tests.fakes.histories import PNG, user


@pytest.mark.parametrize(("head", "tail"), LEVELS)
def test_a_shortened_result_keeps_its_end_where_its_id_stands(
    head: int, tail: int
) -> None:
    content = "begins " + "x" * 9000 + "\nreference id: 77"
    message = Message(Role.TOOL, (ToolResult("c", "view", content),))
    cut = shorten(message, head, tail).parts[0]
    assert isinstance(cut, ToolResult)
    assert (cut.call_id, cut.name) == ("c", "view")
    assert cut.content.startswith("begins ")
    assert cut.content.endswith("reference id: 77")
    assert len(cut.content) == head + len(LEFT_OUT) + tail


def test_each_level_shortens_more_than_the_one_before() -> None:
    totals = [head + tail for head, tail in LEVELS]
    assert totals == sorted(totals, reverse=True)
    assert 300 <= totals[-1] < totals[0] <= 2000


def test_old_images_are_replaced_by_a_line() -> None:
    message = Message(Role.USER, (TextPart("Look:"), PNG, PNG))
    assert shorten(message, 9, 9).parts == (TextPart("Look:"), NO_IMAGE, NO_IMAGE)


def test_old_images_of_results_are_replaced_by_a_line() -> None:
    shown = ToolResult("c", "view", "Opened.", is_error=True, images=(PNG, PNG))
    content = f"Opened.\n{NO_IMAGE.text}"
    cut = shorten(Message(Role.TOOL, (shown,)), *LEVELS[-1])
    assert cut.parts == (ToolResult("c", "view", content, is_error=True),)


@pytest.mark.parametrize(
    "message",
    [
        user("words " * 5000),
        Message(Role.ASSISTANT, (TextPart("x" * 5000),)),
        Message(
            Role.ASSISTANT, (ToolCall("c", "save", '{"a": "' + "x" * 9000 + '"}'),)
        ),
        Message(Role.TOOL, (ToolResult("c", "view", "short"),)),
        Message(Role.SYSTEM, (TextPart("x" * 5000),)),
    ],
    ids=["words", "an answer", "a call", "a short result", "the system message"],
)
def test_shortening_keeps_other_parts_the_same_object(message: Message) -> None:
    assert shorten(message, *LEVELS[-1]) is message


QUESTION = TextPart("Why?")


def asked(code: str) -> tuple[Message, ...]:
    parts = (ContextPart(code), QUESTION)
    return (user("Hi"), Message(Role.ASSISTANT, (TextPart("Yes?"),)),
            Message(Role.USER, parts))  # fmt: skip


@given(st.lists(st.text("aü🌍 ", max_size=60), max_size=200), st.integers(0, 9000))
def test_added_code_is_shortened_at_its_end_by_whole_lines(
    lines: list[str], excess: int
) -> None:
    code = "".join(line + "\n" for line in lines)
    *before, last = less_context(asked(code), excess)
    assert tuple(before) == asked(code)[:-1]
    assert last.parts[-1] == QUESTION
    for part in last.parts[:-1]:
        assert isinstance(part, ContextPart)
        assert f"{code}".startswith(f"{part.text}\n")
        assert len(code.encode()) - len(part.text.encode()) >= excess
        assert len(part.text.encode()) >= 1000


def test_without_added_code_nothing_is_shortened() -> None:
    plain = (user("Hi"),)
    assert without_context(plain) == less_context(plain, 10) == plain
    assert less_context((), 10) == ()
    assert without_context(asked("x\n" * 9000))[-1].parts == (QUESTION,)


def test_added_code_that_is_still_long_enough_is_kept_in_part() -> None:
    code = "line of code\n" * 400
    *_, last = less_context(asked(code), 2000)
    part, question = last.parts
    assert isinstance(part, ContextPart)
    assert question == QUESTION
    assert 2900 < len(part.text) <= len(code) - 2000


def test_system_messages_are_cut_in_their_middles() -> None:
    picture = ImagePart("image/png", "aGk=")
    long = Message(Role.SYSTEM, (TextPart("a" + "x" * 9000 + "z"), picture))
    short = Message(Role.SYSTEM, (TextPart("Be kind."),))
    cut, same = shorter_system((long, short), 3000)
    assert same == short and cut.parts[1] is picture
    text = cut.parts[0]
    assert isinstance(text, TextPart)
    assert text.text.startswith("ax") and text.text.endswith("xz")
    assert 1500 < len(text.text) < 2100  # a power of two
    assert shorter_system((long, short), 2500) == (cut, same)
    assert shorter_system((long,), 100_000) == (long,)
