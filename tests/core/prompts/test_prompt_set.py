"""The prompts in force: which text is used, and when a condition holds."""

import pytest

from byok.core.prompts.prompt_set import PromptSet, Situation
from tests.fakes.prompts import prompts

OWN = prompts(agent="Full {{who}}.", agent__small="Small {{who}}.", chat="Chat.")


@pytest.mark.parametrize(
    ("variants", "text"),
    [
        ((), "Full x."),
        (("small",), "Small x."),
        (("short", "small"), "Small x."),
        (("short",), "Small x."),
    ],
)
def test_the_first_variant_with_a_text_is_used(
    variants: tuple[str, ...], text: str
) -> None:
    assert OWN.render("agent", Situation(variants), {"who": "x"}).text == text


def test_a_prompt_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError):
        OWN.render("You name git branches.", Situation(("small",)))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("tool:view", True),
        ("tool:read|view", True),
        ("tool:read", False),
        ("tool:", False),
        ("parallel", True),
        ("snippets", False),
        ("view", False),
        ("family:qwen|glm", True),
        ("family:glm", False),
        ("other:view", False),
    ],
)
def test_a_condition_holds_by_the_tools_and_the_facts_of_a_request(
    condition: str, expected: bool
) -> None:
    tools, parallel = frozenset({"view", "save-file"}), frozenset({"parallel"})
    situation = Situation(("small", "qwen"), 0, tools, parallel)
    assert situation.holds(condition) is expected
    assert not Situation().holds(condition)


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ("", "agent.short is used instead of agent for the window of 1,000 tokens"),
        (
            "Mine. " * 60,
            "agent.short is used instead of agent for the window of 1,000 tokens",
        ),
        ("Mine. " * 90, "your own agent takes more than 12 % of the window of 1,000"),
    ],
)
def test_the_shipped_text_inside_an_own_one_is_short_where_room_is(
    more: str, note: str
) -> None:
    long = "Long. " * (20 if more else 100)
    shipped = prompts(agent=long, agent__short="Brief.")
    own = prompts(agent=f"{{{{shipped}}}} Mine. {more}")
    both = PromptSet(shipped.templates, own.templates)
    said = both.render("agent", Situation((), 100_000))
    assert (said.text.startswith("Long. Long."), said.note) == (True, "")
    said = both.render("agent", Situation((), 1000))
    assert said.text == f"Brief. Mine. {more}".strip()
    assert said.name == "own agent"
    assert said.note.startswith(note)


LADDER = prompts(agent="x " * 1000, agent__small="y " * 200, agent__short="z.")


@pytest.mark.parametrize(
    ("variants", "window", "name"),
    [
        ((), 0, "agent"),
        ((), 8192, "agent"),
        ((), 4000, "agent.small"),
        ((), 500, "agent.short"),
        (("short",), 8000, "agent.small"),
        (("short",), 500, "agent.short"),
        (("short", "small"), 4000, "agent.small"),
        (("small",), 500, "agent.short"),
    ],
)
def test_the_longest_text_that_fits_is_used(
    variants: tuple[str, ...], window: int, name: str
) -> None:
    said = LADDER.render("agent", Situation(variants, window))
    best = "agent.small" if "small" in variants else "agent"
    note = f"{name} is used instead of {best} for the window of {window:,} tokens"
    assert (said.name, said.note) == (name, note if name != best else "")


@pytest.mark.parametrize(
    ("variants", "text"),
    [
        (("small", "qwen"), "For qwen, of few parameters."),
        (("qwen",), "For qwen, of many parameters."),
        (("small", "glm"), "Mine, few."),
        ((), "Mine, many."),
    ],
)
def test_an_own_text_of_a_family_uses_what_is_shipped_for_the_model(
    variants: tuple[str, ...], text: str
) -> None:
    shipped = prompts(agent="many", agent__small="few")
    own = prompts(
        agent="Mine, {{shipped}}.",
        agent__qwen="For {{#family:qwen|kimi}}qwen{{/}}, of {{shipped}} parameters.",
    )
    both = PromptSet(shipped.templates, own.templates)
    assert both.render("agent", Situation(variants)).text == text


@pytest.mark.parametrize(
    ("window", "text", "name", "note"),
    [
        (100_000, "Mine. " * 99 + "Mine.", "own agent", ""),
        (1000, "My short.", "own agent.short", "your own agent.short is used instead "
         "of your own agent for the window of 1,000 tokens"),
        (10, "My short.", "own agent.short", "your own agent.short takes more than 12 "
         "% of the window of 10 tokens"),
    ],
)  # fmt: skip
def test_an_own_text_that_is_too_long_gives_way_to_the_own_short_one(
    window: int, text: str, name: str, note: str
) -> None:
    own = prompts(agent="Mine. " * 100, agent__short="My short.").templates
    both = PromptSet(prompts(agent="Theirs.", agent__short="Brief.").templates, own)
    assert both.render("agent", Situation((), window)) == (text, name, note)
