"""Aliases: unique, readable, the same in each request, and found again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import (
    Message,
    Part,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from byok.dialects.safe_names import (
    Aliases,
    IdRule,
    NameRule,
    move_images,
    result_text,
    wants_signatures,
)
from tests.fakes.histories import PNG

RULES = {
    "any": (IdRule(), r"[^\0-\x1f]{1,}"),
    "OpenAI": (IdRule(40), r"[ -~]{1,40}"),
    "Mistral": (IdRule(9, is_exact=True), r"[A-Za-z0-9]{9}"),
    "Anthropic": (IdRule(64, is_plain=True), r"[A-Za-z0-9_-]{1,64}"),
}
RULE = pytest.mark.parametrize(("rule", "taken"), RULES.values(), ids=list(RULES))
IDS = st.lists(
    st.text(max_size=70) | st.text("ab1", min_size=9, max_size=9), unique=True
)


@RULE
@given(ids=IDS)
def test_aliases_of_ids_are_taken_unique_and_found_again(
    rule: IdRule, taken: str, ids: list[str]
) -> None:
    aliases = Aliases(rule.spell)
    sent = [aliases.alias(call_id) for call_id in ids]
    assert len(set(sent)) == len(ids)
    assert all(re.fullmatch(taken, alias) for alias in sent)
    assert [aliases.originals[alias] for alias in sent] == ids
    assert [aliases.alias(call_id) for call_id in ids] == sent


def test_names_that_would_become_the_same_or_too_long_stay_apart() -> None:
    aliases = Aliases(NameRule(longest=20).spell)
    names = ["read.file", "read file", "read/file", "7", "x" * 30, "x" * 31]
    sent = [aliases.alias(name) for name in names]
    assert sent[0] == "read_file"
    assert len(set(sent)) == len(names)
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,19}", alias) for alias in sent)
    assert [aliases.originals[alias] for alias in sent] == names


# Which models want the signatures of their calls back


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("gemini-3-pro-preview", True),
        ("Gemini-Flash-Latest", True),
        ("gemini-10-pro", True),
        ("google/gemini-3-pro", True),
        ("gemini-2-flash", False),
        ("gemini-2.5-pro", False),
        ("gemma-4", False),
    ],
)
def test_gemini_3_and_later_want_signatures(model: str, wanted: bool) -> None:
    assert wants_signatures(model) is wanted


# Results as one string each, and their pictures in the user's message behind them


@pytest.mark.parametrize(
    ("content", "is_error", "written"),
    [
        ("found", False, "found"),
        ("", False, "(no output)"),
        ("no such file", True, "ERROR: no such file"),
        ("Error: no", True, "Error: no"),
        (" FAILED x", True, " FAILED x"),
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
