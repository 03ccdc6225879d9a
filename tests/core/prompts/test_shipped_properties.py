"""What holds for every shipped text: the tools that it names, and the room it takes.

A window of 4,096 tokens is the smallest that holds every text beside a conversation;
those of chats and agents fit into 1,024.
"""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.prompts.kinds import FAMILIES, KINDS, REASONING, SHORT, SMALL, VARIANTS
from byok.core.prompts.prompt_set import (
    SMALL_WINDOW,
    PromptSet,
    Situation,
    count_tokens,
    most_tokens,
    shipped_prompts,
    shipped_texts,
)
from byok.core.prompts.template import parse_template
from tests.fakes.occasions import TOOLS

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
NAMES = re.compile(
    rf"(?<![\w-])(?:{'|'.join(sorted(TOOLS, key=len, reverse=True))})(?![\w-])"
)
# Names that are words of English count where they are marked as names or are called.
WORDS = {"view", "remember", "diagnostics"}


def named(text: str) -> set[str]:
    """Return the tools that a text names."""
    found: set[str] = set()
    for match in NAMES.finditer(text):
        quoted = text[match.start() - 1 : match.end() + 1] == f"`{match[0]}`"
        called = text[match.end() : match.end() + 2] == " {"
        if match[0] not in WORDS or quoted or called:
            found.add(match[0])
    return found


def texts(tools: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Write every file with every set of conditions, for a request with these tools."""
    prompts = shipped_prompts()
    for name, template in prompts.templates.items():
        kind = KINDS[name.partition(".")[0]]
        for conditions in (frozenset[str](), kind.conditions):
            for fit in FITS:
                situation = Situation(fit, 0, tools, conditions)
                yield name, template.render({}, situation.holds)


def unoffered(tools: frozenset[str]) -> set[tuple[str, str]]:
    return {(name, tool) for name, text in texts(tools) for tool in named(text) - tools}


def test_tools_are_found_in_a_text() -> None:
    said = "Call `view`, str-replace-editor. A view of remember-me; view {}"
    assert named(said) == {"view", "str-replace-editor"}
    assert named("You remember the view and its diagnostics.") == set()
    assert named("apply_patches, multi-view, `save-file`") == {"save-file"}


@pytest.mark.parametrize("missing", [*TOOLS, "none"])
def test_no_text_names_the_one_tool_that_is_not_offered(missing: str) -> None:
    assert unoffered(frozenset(TOOLS) - {missing}) == set()


@pytest.mark.parametrize("only", [*TOOLS, "mcp_tool"])
def test_no_text_names_another_than_the_only_tool(only: str) -> None:
    assert unoffered(frozenset({only})) == set()


@settings(max_examples=30)
@given(st.frozensets(st.sampled_from(TOOLS)))
def test_no_text_names_a_tool_that_is_not_offered(tools: frozenset[str]) -> None:
    assert unoffered(tools) == set()


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
        assert 0 < count_tokens(prompt.text) <= most_tokens(window), prompt.name


@pytest.mark.parametrize("name", shipped_texts())
def test_a_shipped_text_leaves_no_mark_and_no_comment(name: str) -> None:
    kind, _, variant = name.partition(".")
    assert not variant or variant in VARIANTS
    for tools in (frozenset(TOOLS), frozenset[str]()):
        for found, text in texts(tools):
            if found == name:
                assert not re.search(r"\{\{|\}\}|<!--|\n\n\n", text)
    assert kind in KINDS


def test_a_tool_that_is_named_without_a_condition_is_noticed() -> None:
    text = "Use `view`.\n{{#tool:view}}And `save-file`.{{/}}"
    template = parse_template(text)
    offered = Situation((), 0, frozenset({"view"}), frozenset())
    assert named(template.render({}, offered.holds)) == {"view", "save-file"}
    bare = PromptSet({"agent": template}).render("agent", Situation())
    assert named(bare.text) == {"view"}
