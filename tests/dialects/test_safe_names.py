"""Aliases: unique, readable, the same in each request, and found again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.dialects.safe_names import Aliases, IdRule

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
