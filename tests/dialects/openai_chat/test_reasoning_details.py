"""reasoning_details: pieces of entries joined, and nothing else changed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.dialects.openai_chat.reasoning import join_details
from tests.fakes.slices import CUTS, cut

ENTRY = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
SEALED = {"type": "reasoning.encrypted", "index": 0, "id": "rs_1", "data": "gAAA"}


@given(st.text(), CUTS)
def test_details_of_a_text_are_one_entry_however_it_is_cut(
    text: str, places: list[int]
) -> None:
    pieces = [[{**ENTRY, "text": piece}] for piece in cut(text, places)]
    signed = [{**ENTRY, "signature": "S+/=="}]
    whole = {**ENTRY, "text": text, "signature": "S+/=="}
    assert join_details([*pieces, signed]) == [whole]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(
            [[{**ENTRY, "text": "a"}, {**ENTRY, "text": "b"}]], id="one chunk"
        ),
        pytest.param([[SEALED], [{**SEALED, "id": "rs_2"}]], id="encrypted ones"),
        pytest.param([[{**ENTRY, "summary": "a"}], [SEALED]], id="types"),
        pytest.param([[{**ENTRY, "id": "a"}], [{**ENTRY, "id": "b"}]], id="ids"),
        pytest.param(
            [[{**ENTRY, "text": "a"}], [{**ENTRY, "index": 1, "text": "b"}]],
            id="indexes",
        ),
        pytest.param([[{"type": "later", "x": [1, {"y": 2}]}]], id="unknown type"),
    ],
)
def test_details_that_are_no_pieces_stay_apart(chunks: list[Any]) -> None:
    assert join_details(chunks) == [entry for chunk in chunks for entry in chunk]


def test_details_that_are_encrypted_and_come_twice_are_kept_once() -> None:
    assert join_details([[SEALED], [SEALED], [{**SEALED, "data": "x"}]]) == [
        SEALED,
        {**SEALED, "data": "x"},
    ]


@pytest.mark.parametrize("entries", [None, "x", {}, [None, 5, "x", {}, {"type": 5}]])
def test_details_that_are_damaged_are_left_out(entries: Any) -> None:
    assert join_details([entries]) == []
