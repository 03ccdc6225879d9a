"""Outer fences go, everything else stays, however the text is cut."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.core.stage import drain
from byok.protocols.augment.remarks import MARKDOWN, Unfenced
from tests.fakes.values import CUTS, cut

CODE = st.text(alphabet="`~ \n\rab:é🚢#-", max_size=40)


def unfenced(*pieces: str, names: frozenset[str] | None = None) -> str:
    return "".join(drain(Unfenced(names), pieces))


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


@given(CODE, st.sampled_from(["", "py", "c++"]), CUTS)
def test_a_fenced_text_comes_out_as_it_went_in(
    text: str, name: str, places: list[int]
) -> None:
    answer = f"`````{name}\n{text}\n`````\n"
    if not re.search("`{5}", text):
        assert unfenced(*cut(answer, places)) == text + "\n"


@given(st.sampled_from(["```", "```py\n", "~~~\n", ""]), CODE, CUTS)
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
        list(drain(Unfenced(code=True), answer))
    assert unfenced(answer).startswith("x = 1\n```\nThen")


@pytest.mark.parametrize(
    "between",
    ["Output:\n", "", "\n**Usage:**\n\n", "- I set x.\n", "It has `{x}` (x=1):\n"],
)
def test_code_fence_removal_drops_an_example_behind_the_code(between: str) -> None:
    answer = f"```py\nx = 1\n```\n{between}```\nls\n```\n"
    with pytest.raises(UpstreamGarbled, match="cannot be told apart"):
        list(drain(Unfenced(code=True, fenced=False), answer))


def test_markdown_keeps_the_fences_of_other_languages() -> None:
    code = "```py\nx\n```\n"
    assert unfenced(code, names=MARKDOWN) == code
    assert unfenced(f"````markdown\n{code}````", names=MARKDOWN) == code
    assert unfenced("```py", names=MARKDOWN) == "```py"


@pytest.mark.parametrize("flood", ["`", " ", "\n", "```x"])
def test_code_fence_removal_does_not_hold_a_flood_for_ever(flood: str) -> None:
    stage = Unfenced()
    assert any(piece for _ in range(6000) for piece in stage.feed(flood))
    inside = Unfenced()
    list(inside.feed("```\n"))
    assert any(piece for _ in range(6000) for piece in inside.feed(flood))
