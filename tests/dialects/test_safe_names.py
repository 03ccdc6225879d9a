"""Aliases: unique, readable, the same in each request, and found again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.dialects.safe_names import Aliases, IdRule, spell_name

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


@given(st.lists(st.text(max_size=100), unique=True))
def test_aliases_of_names_are_taken_unique_and_found_again(names: list[str]) -> None:
    aliases = Aliases(spell_name)
    sent = [aliases.alias(name) for name in names]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", alias) for alias in sent)
    assert [aliases.originals[alias] for alias in sent] == names
    assert len(set(sent)) == len(names)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("view", "view"),
        ("my tool", r"my_tool_[0-9a-f]{8}"),
        ("ünï", r"n_[0-9a-f]{8}"),
        ("", r"tool_[0-9a-f]{8}"),
        ("x" * 65, r"x{55}_[0-9a-f]{8}"),
    ],
)
def test_a_name_keeps_what_can_be_read(name: str, pattern: str) -> None:
    assert re.fullmatch(pattern, spell_name(name, 0))
    assert spell_name(name, 1) != spell_name(name, 0)


@RULE
def test_an_id_that_is_taken_stays(rule: IdRule, taken: str) -> None:
    del taken
    assert rule.spell("Abc123xyZ", 0) == "Abc123xyZ"


def test_an_alias_in_use_is_spelled_anew() -> None:
    aliases = Aliases(lambda original, again: f"same{again or ''}")
    assert [aliases.alias(name) for name in "abc"] == ["same", "same1", "same2"]
