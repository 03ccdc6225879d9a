"""Markers: where a block begins, and how much of a text may be one's beginning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.config.fact_settings import FactSettings
from byok.dialects.families import FAMILIES
from byok.toolcalls.text_calls.syntaxes import SYNTAXES, head_fits


@given(st.text('<|tool_calGESR[]{"name: ｜', max_size=30), st.data())
def test_markers_at_the_end_of_a_text_are_kept_back(
    text: str, data: st.DataObject
) -> None:
    for known in SYNTAXES.values():
        opener = data.draw(st.sampled_from([b.opener for b in known.blocks]))
        cut = data.draw(st.integers(0, len(opener) - 1))
        whole = text + opener[:cut]
        kept = known.kept_back(whole)
        longest = max(
            n
            for b in known.blocks
            for n in range(len(b.opener))
            if whole.endswith(b.opener[:n])
        )
        assert kept == longest


@pytest.mark.parametrize("name", SYNTAXES)
def test_markers_are_found_with_the_first_one_first(name: str) -> None:
    syntax = SYNTAXES[name]
    for block in syntax.blocks:
        found = syntax.find(f"a {block.opener} b")
        assert found == (2, block)
        assert syntax.is_suspect(block.opener[0])
    assert syntax.find("plain words") is None


@pytest.mark.parametrize(
    ("text", "fits"), [("", None), ("\n ", None), ("\n{", True), ("words", False)]
)
def test_markers_need_what_follows_them(text: str, fits: bool | None) -> None:
    assert head_fits(SYNTAXES["hermes"].blocks[0], text) is fits


def test_markers_are_known_to_the_settings_and_to_the_families() -> None:
    for name in (*SYNTAXES, "off", ""):
        assert FactSettings(tool_syntax=name).tool_syntax == name
    rows = [row for group in FAMILIES.values() for row in group]
    named = {row.facts.get("tool_syntax") for row in rows} - {None}
    assert named == set(SYNTAXES)
