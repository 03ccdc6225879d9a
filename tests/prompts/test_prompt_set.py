"""The prompts in force: which text is used, and when a condition holds."""

import pytest

from byok.prompts.prompt_set import Situation
from tests.fakes.prompts import prompts

OWN = prompts(agent="Full {{who}}.", agent__small="Small {{who}}.", chat="Chat.")


@pytest.mark.parametrize(
    ("variants", "text"),
    [
        ((), "Full x."),
        (("small",), "Small x."),
        (("short", "small"), "Small x."),
        (("short",), "Full x."),
    ],
)
def test_the_first_variant_with_a_text_is_used(
    variants: tuple[str, ...], text: str
) -> None:
    assert OWN.render("agent", Situation(variants), {"who": "x"}).text == text


def test_a_prompt_that_is_not_there_is_empty() -> None:
    assert OWN.render("title", Situation(("small",))) == ("", "", "")


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


def test_the_version_changes_with_any_text() -> None:
    assert prompts(a="x").version == prompts(a="x").version
    versions = {prompts(**texts).version for texts in ({}, {"a": "x"}, {"a": "y"})}
    assert len(versions) == 3
    assert all(len(version) == 8 for version in versions)
