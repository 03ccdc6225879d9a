"""What holds for every shipped text: its tools, its room, docs/reference/prompts.md.

A window of 4,096 tokens is the smallest that holds every text beside a conversation;
those of chats and agents fit into 1,024.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from byok.core.prompts.own_files import check_name, read_prompt
from byok.core.prompts.prompt_set import (
    FAMILIES,
    KINDS,
    REASONING,
    SHORT,
    SMALL,
    SMALL_WINDOW,
    Situation,
    count_tokens,
    max_prompt_tokens,
    shipped_prompts,
    shipped_texts,
)
from byok.core.prompts.template import Template
from tests.fakes.occasions import TOOLS
from tools.count_prompt_tokens import read_table, write

WINDOWS = (1024, 2048, 4096, 8192, 16_384, 32_768, 131_072)
SMALLEST = {"agent": 1024, "chat": 1024}
FITS = (
    (),
    *((family,) for family in FAMILIES),
    *((family, REASONING) for family in FAMILIES),
    *((SMALL, family) for family in FAMILIES),
    (SMALL,),
    (REASONING,),
)
TOOL_NAMES = re.compile(
    rf"(?<![\w-])(?:{'|'.join(sorted(TOOLS, key=len, reverse=True))})(?![\w-])"
)
# Names that are words of English count where they are marked as names or are called.
WORDS = {"view", "remember", "diagnostics"}


@cache
def named(text: str) -> set[str]:
    found: set[str] = set()
    for match in TOOL_NAMES.finditer(text):
        quoted = text[match.start() - 1 : match.end() + 1] == f"`{match[0]}`"
        called = text[match.end() : match.end() + 2] == " {"
        if match[0] not in WORDS or quoted or called:
            found.add(match[0])
    return found


def texts(tools: frozenset[str]) -> set[tuple[str, str]]:
    """Write every file with every set of conditions, for a request with these tools."""
    return {
        (name, template.render({}, Situation(fit, 0, tools, conditions).holds))
        for name, template in shipped_prompts().templates.items()
        for conditions in (frozenset[str](), KINDS[name.partition(".")[0]].conditions)
        for fit in FITS
    }


def test_every_prompt_is_shipped_and_names_only_what_it_may() -> None:
    assert {name.partition(".")[0] for name in shipped_texts()} == set(KINDS)
    for name, text in shipped_texts().items():
        assert check_name(name) is None
        assert isinstance(read_prompt(name, text), Template), name
        kind, _, variant = name.partition(".")
        said = shipped_prompts().render(kind, Situation((variant,)))
        assert said.text.endswith((".", "```", ">")), name


@pytest.mark.parametrize("missing", ["none", *TOOLS[::3], "all"])
def test_no_text_names_a_tool_that_is_not_offered(missing: str) -> None:
    tools = frozenset(TOOLS) - {missing} if missing != "all" else frozenset[str]()
    for name, text in texts(tools):
        assert named(text) <= tools, name
        assert not re.search(r"\{\{|\}\}|<!--|\n\n\n", text), "a mark or a comment"


def test_the_texts_of_agents_name_the_tools_that_are_offered() -> None:
    told = {tool for _, text in texts(frozenset(TOOLS)) for tool in named(text)}
    assert {"codebase-retrieval", "view", "str-replace-editor"} <= told


@pytest.mark.parametrize(
    ("name", "window"),
    [(k, w) for k in KINDS for w in WINDOWS if w >= SMALLEST.get(k, 4096)],
)
def test_a_prompt_takes_an_eighth_of_its_window_at_most(name: str, window: int) -> None:
    kind = KINDS[name]
    short = (SHORT,) if window < SMALL_WINDOW else ()
    for fit in FITS:
        situation = Situation((*short, *fit), window, frozenset(TOOLS), kind.conditions)
        values = dict.fromkeys(kind.slots, "1000")
        prompt = shipped_prompts().render(name, situation, values)
        assert 0 < count_tokens(prompt.text) <= max_prompt_tokens(window), prompt.name


# docs/reference/prompts.md

PAGE = (Path(__file__).parents[3] / "docs/reference/prompts.md").read_text("utf-8")
STALE = 0.1  # of the characters that were counted
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


@pytest.mark.parametrize("name", sorted(shipped_texts()))
def test_the_page_says_why_each_sentence_is_there(name: str) -> None:
    said = " ".join(PAGE.replace("\\|", "|").split())
    found = [*sentences(shipped_texts()[name])]
    assert found and [sentence for sentence in found if sentence not in said] == []


@pytest.mark.parametrize("name", sorted(shipped_texts()))
def test_the_tokens_were_counted_for_the_present_text(name: str) -> None:
    numbers = iter(read_table(PAGE)[name])
    for text, counted in zip(
        write(name), zip(*[numbers] * 4, strict=True), strict=True
    ):
        characters, large, small, estimate = counted
        assert abs(len(text) - characters) <= STALE * characters, "run the tool again"
        assert 0 < max(large, small) <= min(estimate, count_tokens(text) / (1 - STALE))
