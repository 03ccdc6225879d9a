"""Sentences are told from code, in no language's grammar; what is uncertain is none."""

import pytest

from byok.protocols.augment.remarks import (
    is_lead,
    is_refusal,
    is_talk,
    may_be_words,
    may_become_lead,
    may_become_words,
    may_open_remark,
)

CODE = [
    "x = 1",
    "return a + b",
    "import os\nimport sys",
    "if ready and not done:",
    "else:",
    "pass",
    "def f():\n    return 1",
    "print(x)",
    "save! unless saved?",
    "retry unless finished?",
    "user.name",
    "# compute the sum of a and b.",
    "// Compute the sum.",
    "-- the sum of both.",
    " * Returns the sum of both.",
    "{",
    "<p>Hello to you.</p>",
    "SELECT a FROM b;",
    "END.",
    "break;",
    "",
    " \n",
]
TALK = [
    "Sorry, I can't help with that.",
    "No changes are needed.",
    "The code already does this; nothing is to be done.",
    "I changed `foo(a, b)` so that it returns `x = 2`.",
    "I changed foo(a) and removed bar.\n\n- It returns two.\n- It is **faster**!",
    "Could you show me the file?",
    "Ich habe die Funktion geändert.",
    "我已经更新了这个函数。",
]


@pytest.mark.parametrize("text", CODE)
def test_code_is_no_talk(text: str) -> None:
    assert not is_talk(text)


@pytest.mark.parametrize("text", TALK)
def test_sentences_alone_are_talk(text: str) -> None:
    assert is_talk(text)
    assert not is_talk(f"{text}\nx = 1")
    for line in text.splitlines():
        assert may_be_words(line)


@pytest.mark.parametrize("text", [*CODE, *TALK, "1. It.", '- "So", she said', "* `a`"])
@pytest.mark.parametrize("more", ["", "\n", " - a(b) `c`; and 1) d", "**x** (y)."])
def test_talk_detection_decides_no_line_by_its_beginning(text: str, more: str) -> None:
    for line in (text + more).splitlines(keepends=True):
        if may_be_words(line):
            assert all(may_become_words(line[:end]) for end in range(len(line)))


@pytest.mark.parametrize(
    "line",
    [
        "Here is the updated file:",
        "here's the code:\n",
        "Here’s a title: ",
        "Sure! Here is the completion:",
        "Certainly, I made the change:",
        "Below is the new version：",
    ],
)
def test_lead_is_a_line_that_announces(line: str) -> None:
    assert is_lead(line)
    assert all(may_become_lead(line[:end]) for end in range(len(line)))


@pytest.mark.parametrize(
    "line",
    [
        "Here is the file",
        "else:",
        "here:",
        "ok:",
        "okay then:",
        "sure:",
        "def here():",
        "hereby: x",
        "Where is it:",
        "",
    ],
)
def test_lead_is_none_of_other_lines(line: str) -> None:
    assert not is_lead(line)


@pytest.mark.parametrize(
    "text",
    [
        "Sorry, I can't help with that.",
        "I'm sorry, but I cannot assist with this request.",
        "I’m really sorry, but I am not able to edit this file.",
        "As an AI language model, I won't do that.",
        "抱歉，我无法修改这个文件。",
        "Es tut mir leid, aber ich kann das nicht ändern; ich kann hier nicht helfen.",
    ],
)
def test_refusal_is_detected_among_words_as_well(text: str) -> None:
    assert is_refusal(text)
    assert is_refusal(text, among_words=True)


@pytest.mark.parametrize(
    "text",
    ["Sorry, we are closed.", "Unfortunately, I was late.", "Sorry about the delay!"],
)
def test_refusal_may_include_an_apology(text: str) -> None:
    assert is_refusal(text)
    assert not is_refusal(text, among_words=True)


@pytest.mark.parametrize(
    "text",
    [
        "sorry = None",
        "sorry()",
        "x = 1",
        "I can read this.",
        "Sorry, here it is:\n```py\nx\n```",
        "Sorry. " * 100,
        "",
    ],
)
def test_refusal_is_not_detected_in_other_texts(text: str) -> None:
    assert not is_refusal(text)


@pytest.mark.parametrize("text", [*TALK, "Here's it:", "1. I did", "**Sorry**, no", ""])
def test_talk_detection_knows_the_beginnings_of_remarks(text: str) -> None:
    assert all(may_open_remark(text[:end]) for end in range(len(text) + 1))
