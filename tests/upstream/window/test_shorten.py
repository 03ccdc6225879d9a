"""Only what is old is shortened: results and pictures."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import (
    ContextPart,
    ImagePart,
    Message,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from byok.upstream.window.compaction import (
    LEVELS,
    NO_IMAGE,
    keep_ends_of_results,
    less_context,
    outline_results,
    shorter_system,
    without_context,
)
from tests.fakes.histories import PNG, user


def call(**arguments: object) -> ToolCall:
    return ToolCall("c", "view", json.dumps(arguments))


def outlined(content: str, given: ToolCall | None = None, **fields: object) -> str:
    """Return the line that replaces a result."""
    result = ToolResult("c", "view", content, **fields)  # type: ignore[arg-type]
    calls = {"c": given} if given else {}
    [part] = outline_results(Message(Role.TOOL, (result,)), calls).parts
    assert isinstance(part, ToolResult)
    assert (part.call_id, part.name, part.is_error) == ("c", "view", result.is_error)
    return part.content


_LINES = "x = 1\n" * 120
_RAN = f"<return-code>\n2\n</return-code>\n{_LINES}"


def test_a_line_tells_the_tool_its_argument_and_how_it_ended() -> None:
    rows = [
        (outlined(_LINES, call(path="a/b.rs")), "[view a/b.rs: ok, 120 lines; "),
        (
            outlined(_LINES, call(command="str_replace", path="a")),
            "[view a: ok, 120 lines; ",
        ),
        (outlined("x" * 900, call(path="a")), "[view a: ok, 1 line; "),
        (outlined(_RAN, call(command="make\n test")), "[view make test: exit code 2, "),
        (outlined(_RAN, call(path="a")), "[view a: ok, 123 lines; "),
        (outlined(_RAN.replace("2", "0"), call(command="make")), "[view make: ok, "),
        (outlined(_LINES, call(path="a" * 900)), "[view " + "a" * 100 + "…: ok"),
        (outlined(_LINES, call(strange="thing", n=1)), "[view thing: ok, "),
        (outlined(_LINES, call(n=1)), "[view: ok, "),
        (outlined(_LINES, ToolCall("c", "view", "{broken")), "[view: ok, "),
        (outlined(_LINES), "[view: ok, "),
        (
            outlined(f"\n No such  file\n{_LINES}", call(path="a"), is_error=True),
            "[view a: error: No such file; ",
        ),
        (
            outlined(f"{_LINES}\nReference ID: 77", call(path="a")),
            "[view a: ok, 122 lines; Reference ID: 77; ",
        ),
    ]
    assert [line for line, begins in rows if not line.startswith(begins)] == []
    assert [line for line, _ in rows if "\n" in line or len(line) > 200] == []


def test_a_line_counts_the_lines_that_were_left_out_before() -> None:
    whole = Message(Role.TOOL, (ToolResult("c", "view", _LINES * 9),))
    cut = keep_ends_of_results(whole, {})
    assert cut != whole
    assert outline_results(cut, {}) == outline_results(whole, {})


def test_shortening_twice_is_shortening_once() -> None:
    """Else every compaction would change the beginning of the prompt again."""
    for content in (_LINES * 9, _RAN * 9, "x" * 9000, "short"):
        for is_error in (False, True):
            given = ToolResult("c", "view", content, is_error=is_error)
            once = Message(Role.TOOL, (given,))
            for shorten in LEVELS:
                once = shorten(once, {"c": call(path="a" * 90)})
                assert shorten(once, {"c": call(path="a" * 90)}) is once


def test_old_images_of_results_are_replaced_by_a_line() -> None:
    shown = ToolResult("c", "view", "Opened.", is_error=True, images=(PNG, PNG))
    content = f"Opened.\n{NO_IMAGE.text}"
    cut = LEVELS[-1](Message(Role.TOOL, (shown,)), {})
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
    assert all(shorten(message, {}) is message for shorten in LEVELS)


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


def test_without_added_code_nothing_is_shortened() -> None:
    plain = (user("Hi"),)
    assert without_context(plain) == less_context(plain, 10) == plain
    assert less_context((), 10) == ()
    assert without_context(asked("x\n" * 9000))[-1].parts == (QUESTION,)
