"""docs/PROMPTS.md tells of every prompt, every sentence, and of their present size."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core.prompts.kinds import KINDS
from byok.core.prompts.prompt_set import count_tokens, shipped_texts
from tools.count_prompt_tokens import read_table, write, write_table

PAGE = (Path(__file__).parents[3] / "docs" / "PROMPTS.md").read_text("utf-8")
STALE = 0.1  # of the characters that were counted
NAMES = sorted(shipped_texts())
_COMMENT = re.compile(r"\A(?:<!--.*?-->\s*)+", re.DOTALL)
_EXAMPLE = re.compile(r"<augment_code_snippet.*?</augment_code_snippet>", re.DOTALL)
_MARKS = re.compile(r"^(?:\{\{.*\}\}|# .*|\s*)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z`\"{])")


def sentences(text: str) -> Iterator[str]:
    """Give each sentence of a prompt's file on one line."""
    text = _EXAMPLE.sub("", _COMMENT.sub("", text))
    for block in re.split(r"\n\n|\n(?=- )", _MARKS.sub("\n", text)):
        for sentence in _SENTENCE.split(" ".join(block.split()).removeprefix("- ")):
            if len(sentence.split()) > 1:
                yield sentence


def test_sentences_are_found() -> None:
    text = (
        "<!-- No. -->\nOne `a`, and\ntwo: three. Four five.\n{{#x}}\n- Six seven\n{{/}}"
    )
    assert [*sentences(text)] == ["One `a`, and two: three.", "Four five.", "Six seven"]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_why_each_sentence_is_there(name: str) -> None:
    said = " ".join(PAGE.replace("\\|", "|").split())
    assert [s for s in sentences(shipped_texts()[name]) if s not in said] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_prompt_has_a_section(name: str) -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    assert any(f"`{name}`" in heading for heading in headings)


@pytest.mark.parametrize("name", KINDS)
def test_the_page_says_when_a_prompt_is_used(name: str) -> None:
    assert f"`{name}`" in PAGE.partition("## Your own prompts")[0]


def test_the_table_of_tokens_has_a_row_for_each_prompt() -> None:
    assert sorted(read_table(PAGE)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_tokens_were_counted_for_the_present_text(name: str) -> None:
    numbers = iter(read_table(PAGE)[name])
    for text, counted in zip(
        write(name), zip(*[numbers] * 4, strict=True), strict=True
    ):
        characters, large, small, estimate = counted
        assert abs(len(text) - characters) <= STALE * characters, "run the tool again"
        assert 0 < max(large, small) <= min(estimate, count_tokens(text) / (1 - STALE))


def test_the_estimate_was_on_the_safe_side_of_both_tokenizers() -> None:
    for name, numbers in read_table(PAGE).items():
        for n in (0, 4):
            assert max(numbers[n + 1 : n + 3]) <= numbers[n + 3], name


def test_a_table_is_read_as_it_was_written() -> None:
    words = {"words": lambda text: len(text.split()), "none": lambda text: 0}
    table = "\n".join(write_table(words))
    begin, end = (
        f"<!-- tools/count_prompt_tokens.py: {x} -->" for x in ("begin", "end")
    )
    found = read_table(f"before\n{begin}\n{table}\n{end}\nafter")
    most, least = write("agent")
    assert sorted(found) == NAMES
    assert found["agent"][:3] == [len(most), len(most.split()), 0]
    assert found["agent"][4:6] == [len(least), len(least.split())]
