"""Remarks go, or fail the answer; code comes out as it went in, however it is cut."""

import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.core.stage import Stage, chain, drain
from byok.protocols.augment.remarks import (
    MARKDOWN,
    ContentKind,
    FenceRemover,
    LeadRemover,
    QuoteRemover,
    RemarkFilter,
    RemarkRemover,
    is_lead,
    is_refusal,
    is_talk,
    may_be_words,
    may_become_lead,
)
from tests.fakes.values import CUTS, cut

OLD = "def f():\n    return 1\n"
NEW = "def f():\n    return 2\n"
FENCED = f"```python\n{NEW}```\n"


def out(stage: Stage[str, str], pieces: Iterable[str]) -> str:
    return "".join(drain(stage, pieces))


def code(
    answer: Iterable[str], old: str = OLD, holds: ContentKind = ContentKind.CODE
) -> str:
    """What an answer leaves where it replaces code."""
    return out(chain(RemarkRemover(old, holds), FenceRemover(code=True)), answer)


@pytest.mark.parametrize(
    "answer",
    [
        NEW,
        FENCED,
        f"Here is the updated file:\n\n{FENCED}\nI changed the value. Let me know!",
        f"\nSure!\n\nI made `f()` return 2:\n{FENCED}",
        f"1. I looked at it.\n2. It returns 2 now.\n\n{FENCED}",
        f"Here is the code:\n\n{NEW}",
        f"我已经更新了这个函数：\n{FENCED}",
    ],
)
@pytest.mark.parametrize("holds", [ContentKind.CODE, ContentKind.DATA])
def test_remarks_around_the_code_are_dropped(answer: str, holds: ContentKind) -> None:
    assert code([answer], holds=holds) == NEW
    assert code(answer, holds=holds) == NEW


@pytest.mark.parametrize(
    "answer",
    [
        "Sorry, I can't help with that.",
        "No changes are needed.",
        "I have updated the function to return 2.\n\nIt is done!",
    ],
)
def test_remarks_in_place_of_code_fail_the_answer(answer: str) -> None:
    with pytest.raises(UpstreamGarbled, match="remark"):
        code(answer)


@pytest.mark.parametrize("old", ["", OLD, "It returns one.", "x"])
@pytest.mark.parametrize("holds", ContentKind)
def test_refusal_by_the_model_is_never_inserted(old: str, holds: ContentKind) -> None:
    with pytest.raises(UpstreamGarbled, match="remark"):
        code("I'm sorry, but I can't help with that.\n", old, holds)


@pytest.mark.parametrize(
    ("answer", "old", "holds"),
    [
        ("It returns two.", "It returns one.", ContentKind.CODE),
        ("It adds numbers.", "", ContentKind.CODE),
        ("Welcome to our site!", "Hello", ContentKind.DATA),
        ("Sorry, we are closed.", "We are open.", ContentKind.WORDS),
        ("I'm sorry, I can't help.", "I'm sorry, I won't help you.", ContentKind.WORDS),
        ("It adds numbers:\n```\nx\n```\n", "It adds numbers.", ContentKind.WORDS),
        ("Here are the steps:\n\n1. Go.\n", "Steps.", ContentKind.WORDS),
        ("for a in b:", "for a in c:", ContentKind.CODE),
    ],
)
def test_remarks_stay_where_text_is_wanted(
    answer: str, old: str, holds: ContentKind
) -> None:
    stage = RemarkRemover(old, holds)
    assert out(stage, answer) == answer


def test_remarks_do_not_begin_with_a_key_or_a_label() -> None:
    for answer in ("ok:\n  label: OK\n", "sure:\n  return 1;\n"):
        for holds in (ContentKind.CODE, ContentKind.DATA):
            assert code(answer, "no:\n", holds) == answer


def test_in_markdown_only_its_own_fence_has_remarks_before_it() -> None:
    def text(answer: str) -> str:
        return out(RemarkRemover("# t\n", ContentKind.WORDS, MARKDOWN), answer)

    own = "It goes like this:\n\n```py\nx\n```\n"
    assert text(own) == own
    assert (
        text("I made it longer:\n\n```markdown\n# T\n```\n")
        == "```markdown\n# T\n```\n"
    )


def test_a_stream_waits_only_where_a_remark_may_begin() -> None:
    stage = RemarkRemover(OLD, ContentKind.CODE, streams=True)
    assert list(stage.feed("x = 1")) == ["x = 1"]
    named = RemarkRemover(OLD, ContentKind.CODE, streams=True)
    assert list(named.feed("import os\n")) == []
    assert list(named.feed("i")) == ["import os\ni"]
    words = RemarkRemover(OLD, ContentKind.WORDS, streams=True)
    assert list(words.feed("One two")) == ["One two"]
    waiting = RemarkRemover(OLD, ContentKind.CODE, streams=True)
    answer = f"I made it two:\n\n{FENCED}"
    assert out(chain(waiting, FenceRemover()), answer) == NEW


@pytest.mark.parametrize(
    "label",
    [
        "a.py\n",
        "**src/a.py**\n",
        "`a.py`:\n",
        "Code:\r\n",
        "File: a.py\n",
    ],
)
def test_remark_that_names_a_file_before_its_fence_is_no_code(label: str) -> None:
    answer = f"{label}{FENCED}"
    for pieces in ([answer], answer):
        stage = RemarkRemover(OLD, ContentKind.CODE, streams=True)
        assert out(chain(stage, FenceRemover(code=True)), pieces) == NEW


TEXTS = st.lists(
    st.sampled_from(
        [
            "Here it is:\n",
            "Some words.\n",
            "x = 1\n",
            "\n",
            "  y\n",
            "``",
            "ab",
            "`c`\n",
        ]
    ),
    max_size=8,
).map("".join)
FENCES = st.sampled_from(["", "```\n", "```py\nx\n```\n", "    ```\n"])


@given(TEXTS, FENCES, TEXTS, CUTS, st.sampled_from(ContentKind), st.booleans())
def test_remark_removal_any_slicing_gives_the_same(
    before: str,
    fence: str,
    after: str,
    places: list[int],
    holds: ContentKind,
    streams: bool,
) -> None:
    answer = before + fence + after

    def text(pieces: Iterable[str]) -> str | None:
        try:
            return out(RemarkRemover(OLD, holds, streams=streams), pieces)
        except UpstreamGarbled:
            return None

    whole = text([answer])
    assert text(cut(answer, places)) == whole
    assert whole is None or answer.endswith(whole)


# Whole answers


def whole(answer: str, old: str = OLD, *, file: bool = True) -> str:
    stage = RemarkFilter(old, ContentKind.CODE, file=file)
    return out(
        chain(
            stage, chain(RemarkRemover(old, ContentKind.CODE), FenceRemover(code=True))
        ),
        answer,
    )


def test_remark_removal_takes_the_one_block_with_lines_of_the_file() -> None:
    odd = "x -> y: f(x)=2 now\n"
    assert whole(f"{odd}{FENCED}{odd}") == NEW
    assert whole(f"{FENCED}{odd}") == NEW
    assert whole(f"Here it is:\n{FENCED}") == NEW
    assert whole(NEW) == NEW


def test_remarks_and_code_that_cannot_be_told_apart_fail_the_answer() -> None:
    odd = "x -> y: f(x)=2 now\n"
    for answer in (
        f"{odd}```\nz\n```\n",
        f"{odd}{FENCED}{odd}{FENCED}",
        f"{odd}{FENCED}def f():\n",
    ):
        with pytest.raises(UpstreamGarbled, match="mixes"):
            whole(answer)


def test_remark_removal_does_not_cut_a_file_in_several_blocks_to_the_first() -> None:
    old = "def f():\n    a = 1\n    b = 2\n    return a\ndef g():\n    pass\n"
    f, g = old[: old.index("def g")], old[old.index("def g") :]
    with pytest.raises(UpstreamGarbled, match="mixes"):
        whole(f"```py\n{g}```\nand\n```py\n{f}```\n", old)
    example = "Run it:\n```sh\npython a.py\n```\nThat was:\n```py\n    a = 1\n```\n"
    new = old.replace("a = 1", "a = 3")
    assert whole(f"```py\n{new}```\n{example}", old) == new
    new = f'"""\n```py\nf()\n```\n"""\n{new}'
    assert whole(f"```py\n{new}```\n", old) == new


def test_remark_removal_takes_a_text_out_of_its_fence() -> None:
    def text(answer: str, old: str) -> str:
        return out(RemarkFilter(old, ContentKind.WORDS, file=True), answer)

    old = "# Title\n\n```sh\nls\n```\n\nMore.\n"
    new = old.replace("More", "Less")
    assert text(f"```\n{new}```\n", old) == new
    assert text(f"\n~~~\n{new}~~~", old) == new
    own = "```\nx\n```\n\nText.\n\n```\ny\n```\n"
    for before in (old, own, "x\n"):
        assert text(own, before) == own


def test_remark_removal_keeps_fences_behind_lines_of_the_file() -> None:
    new = f'T = """\n{OLD}```\nx\n```\n"""\nU = 2\n'
    assert whole(new) == new


def test_remark_removal_rejects_a_file_of_which_no_line_stayed() -> None:
    old = "a = 1\nb = 2\nc = 3\n"
    with pytest.raises(UpstreamGarbled, match="nothing in common"):
        whole("I set them {all} to 4", old)
    assert whole("I set them {all} to 4", old, file=False)
    assert whole("d = 4\n   b = 2\n", old)
    assert whole("```\nd = 4\n```", old) == "d = 4\n"
    assert whole("d = 4\n", "a = 1\nb = 2\n") == "d = 4\n"


# Sentences are told from code, in no language's grammar; what is uncertain is none


CODE = [
    "x = 1",
    "import os\nimport sys",
    "if ready and not done:",
    "else:",
    "def f():\n    return 1",
    "print(x)",
    "retry unless finished?",
    "user.name",
    "# compute the sum of a and b.",
    "// Compute the sum.",
    " * Returns the sum of both.",
    "{",
    "<p>Hello to you.</p>",
    "SELECT a FROM b;",
    "",
    " \n",
]
TALK = [
    "Sorry, I can't help with that.",
    "No changes are needed.",
    "The code already does this; nothing is to be done.",
    "I changed `foo(a, b)` so that it returns `x = 2`.",
    "I changed foo(a) and removed bar.\n\n- It returns two.\n- It is **faster**!",
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


@pytest.mark.parametrize(
    "line",
    [
        "Here is the updated file:",
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
    "text",
    [
        "Sorry, I can't help with that.",
        "I'm sorry, but I cannot assist with this request.",
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
    [
        "sorry = None",
        "I can read this.",
        "Sorry, here it is:\n```py\nx\n```",
        "Sorry. " * 100,
        "",
    ],
)
def test_refusal_is_not_detected_in_other_texts(text: str) -> None:
    assert not is_refusal(text)


# Outer fences go, everything else stays, however the text is cut


FENCE_CODE = st.text(alphabet="`~ \n\rab:é🚢#-", max_size=40)


def unfenced(*pieces: str, names: frozenset[str] | None = None) -> str:
    return "".join(drain(FenceRemover(names), pieces))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("\n\n  ```py title=a.py\r\nx\r\n  ```\r\n", "x\r\n"),
        ("~~~~\nx\n```\n~~~~", "x\n```\n"),
        ("````md\n```py\nx\n```\n````", "```py\nx\n```\n"),
        ("```py\nx\n```\nThat is all.", "x\n"),
        ("```py\nx\n```\n\nI changed `f()`.\n\nIt returns 2.\n", "x\n"),
        ("```py\nx\n```\nRun it:\n```sh\npython a.py\n```\nBye.", "x\n"),
        ("```\n```py\nx\n```\ny\n```\nBye.", "```py\nx\n```\ny\n"),
        ("```\nfoo\n```\nbar\n```\nbaz\n```", "foo\n```\nbar\n```\nbaz\n"),
        (
            '```py\n"""\n    ```\n    x\n    ```\n"""\n```\nBye.',
            '"""\n    ```\n    x\n    ```\n"""\n',
        ),
        (
            "````\n# T\n```\nx\n```\nI like it.\n```\ny\n```\n````\nBye.",
            "# T\n```\nx\n```\nI like it.\n```\ny\n```\n",
        ),
        ("```py\nx\n~~~\ny\n```", "x\n~~~\ny\n"),
        ("```py\nx\n``\n```", "x\n``\n"),
        ("```py\nx\n`````\nBye.", "x\n"),
        ("```py\nnever closed", "never closed"),
        ("```py", ""),
        ("```\n```", ""),
        ("``` a ` b\nx", "``` a ` b\nx"),
        ("``", "``"),
        ("", ""),
        (" \n ", " \n "),
    ],
)
def test_an_outer_fence_is_taken_away(answer: str, text: str) -> None:
    assert unfenced(answer) == text
    assert unfenced(*answer) == text


@given(FENCE_CODE, st.sampled_from(["", "py", "c++"]), CUTS)
def test_a_fenced_text_comes_out_as_it_went_in(
    text: str, name: str, places: list[int]
) -> None:
    answer = f"`````{name}\n{text}\n`````\n"
    if not re.search("`{5}", text):
        assert unfenced(*cut(answer, places)) == text + "\n"


@given(st.sampled_from(["```", "```py\n", "~~~\n", ""]), FENCE_CODE, CUTS)
def test_code_fence_removal_any_slicing_gives_the_same(
    head: str, text: str, places: list[int]
) -> None:
    assert unfenced(*cut(head + text, places)) == unfenced(head + text)


BLOCKS = st.lists(
    st.sampled_from(
        [
            "Text here.",
            "",
            "x = 1",
            "```py\nx\n```",
            "```\nls\n```",
            "~~~\n~~~",
            "    ```",
        ]
    ),
    max_size=6,
).map(lambda parts: "".join(f"{part}\n" for part in parts))
REMARKS = st.sampled_from(["", "\n", "Bye.", "\nI changed `f`.\n\n* a\n* b\n"])


@given(BLOCKS, st.sampled_from(["md", "", "markdown"]), REMARKS, CUTS)
def test_code_fence_removal_keeps_blocks_of_the_text_and_drops_remarks(
    text: str, name: str, remarks: str, places: list[int]
) -> None:
    answer = f"```{name}\n{text}```\n{remarks}"
    assert unfenced(*cut(answer, places)) == text


def test_code_fence_removal_does_not_take_words_between_blocks_for_code() -> None:
    answer = "```\nx = 1\n```\nThen you run it.\n```\nls\n```\n"
    with pytest.raises(UpstreamGarbled, match="cannot be told apart"):
        list(drain(FenceRemover(code=True), answer))
    assert unfenced(answer).startswith("x = 1\n```\nThen")


@pytest.mark.parametrize(
    "between",
    ["Output:\n", "", "\n**Usage:**\n\n", "- I set x.\n", "It has `{x}` (x=1):\n"],
)
def test_code_fence_removal_drops_an_example_behind_the_code(between: str) -> None:
    answer = f"```py\nx = 1\n```\n{between}```\nls\n```\n"
    with pytest.raises(UpstreamGarbled, match="cannot be told apart"):
        list(drain(FenceRemover(code=True, fenced=False), answer))


def test_markdown_keeps_the_fences_of_other_languages() -> None:
    code = "```py\nx\n```\n"
    assert unfenced(code, names=MARKDOWN) == code
    assert unfenced(f"````markdown\n{code}````", names=MARKDOWN) == code
    assert unfenced("```py", names=MARKDOWN) == "```py"


@pytest.mark.parametrize("flood", ["`", " ", "\n", "```x"])
def test_code_fence_removal_does_not_hold_a_flood_for_ever(flood: str) -> None:
    stage = FenceRemover()
    assert any(piece for _ in range(6000) for piece in stage.feed(flood))
    inside = FenceRemover()
    list(inside.feed("```\n"))
    assert any(piece for _ in range(6000) for piece in inside.feed(flood))


# Announcements and quotation marks go, the text comes out as it went in


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Here is the completion:\n    return a", "    return a"),
        ("Sure! Here's the completion:\r\n\r\n\treturn a\n", "\treturn a\n"),
        ("Here is the completion:", ""),
        ("here = 1\n", "here = 1\n"),
        ("  sure", "  sure"),
        ("", ""),
    ],
)
def test_announcing_first_line_is_dropped(answer: str, text: str) -> None:
    assert out(LeadRemover(), answer) == out(LeadRemover(), [answer]) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The message:\n\nFix it", "Fix it"),
        ("Fix it\n\nWhy:\n- x", "Fix it\n\nWhy:\n- x"),
        ("Fix it:", "Fix it:"),
        ("Fix it:\n", "Fix it:\n"),
    ],
)
def test_announcing_first_line_with_a_colon_in_strict_mode(
    answer: str, text: str
) -> None:
    assert out(LeadRemover(strict=True), answer) == text
    assert out(LeadRemover(strict=True), [answer]) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('"Fix it"', "Fix it"),
        (" “Fix it”\n", "Fix it"),
        ("`Fix it`", "Fix it"),
        ('"', '"'),
        ('"Fix" it', '"Fix" it'),
        ('Fix "it"', 'Fix "it"'),
        ("", ""),
    ],
)
def test_quotation_marks_around_all_of_it_are_removed(answer: str, text: str) -> None:
    assert out(QuoteRemover(), answer) == out(QuoteRemover(), [answer]) == text
