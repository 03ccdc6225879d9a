"""Texts that have no room: their ends stay, and each gets its share."""

from hypothesis import given
from hypothesis import strategies as st

from byok.core.escapes import LEFT_OUT, fair_share, keep_ends, truncate_middle

LETTERS = st.text("abc\n", max_size=400)


@given(LETTERS, st.integers(0, 60), st.integers(0, 60))
def test_truncate_middle_keeps_both_ends(text: str, head: int, tail: int) -> None:
    cut = keep_ends(text, head, tail)
    if cut == text:
        assert len(text) <= head + len(LEFT_OUT) + tail
    else:
        assert len(cut) < len(text)
        assert cut == text[:head] + LEFT_OUT + (text[-tail:] if tail else "")


@given(LETTERS, st.integers(60, 500))
def test_truncate_cuts_a_text_to_a_length(text: str, limit: int) -> None:
    cut = truncate_middle(text, limit)
    assert len(cut) <= limit
    assert (cut == text) is (len(text) <= limit)


@given(LETTERS, st.integers(0, 60))
def test_truncate_takes_any_limit(text: str, limit: int) -> None:
    assert len(truncate_middle(text, limit)) <= max(len(LEFT_OUT) + 20, limit)


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(0, 20_000))
def test_fair_share_cap_fills_the_room_and_no_more(sizes: list[int], room: int) -> None:
    cap = fair_share(sizes, room)
    taken = sum(min(size, cap) for size in sizes)
    assert taken <= room
    larger = sum(min(size, cap + 1) for size in sizes)
    assert larger > room or cap >= max(sizes, default=0)
