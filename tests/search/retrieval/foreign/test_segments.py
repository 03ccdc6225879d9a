"""Terms are found in text without spaces."""

from hypothesis import given
from hypothesis import strategies as st

from byok.search.retrieval.foreign.words import LONGEST_RUN, Segment, segment


def _terms(text: str, *terms: str, shortest: int = 1) -> list[str]:
    entries = dict.fromkeys(terms, "x")
    found = segment(text, entries, max(map(len, terms)), shortest)
    return [text[part.start : part.end] for part in found]


def test_longest_term_is_taken() -> None:
    assert _terms("abcd", "ab", "cd", "abcd") == ["abcd"]


def test_most_characters_are_covered_even_if_the_first_term_is_shorter() -> None:
    assert _terms("abcde", "abc", "ab", "cde") == ["ab", "cde"]


def test_unknown_characters_are_skipped() -> None:
    assert _terms("?ab?b?", "ab") == ["ab"]


def test_single_character_counts_between_terms_only() -> None:
    assert _terms("cabac", "a", "b", "c") == ["c", "a", "b", "a", "c"]
    assert _terms("a?ab", "a", "b") == ["b"]


def test_terms_below_the_shortest_are_not_used() -> None:
    assert _terms("abcd", "a", "bcd", shortest=2) == ["bcd"]


def test_term_knows_the_meaning_of_its_parts() -> None:
    entries = {"ab": "request", "cd": "context", "abcd": "request context"}
    assert list(segment("abcd", entries, 4)) == [
        Segment(0, 4, "request context", ("request", "context"))
    ]


def test_long_text_is_read_in_part() -> None:
    assert len(list(segment("a" * 2 * LONGEST_RUN, {"a": "x"}, 1))) == LONGEST_RUN


@given(st.text("abc", max_size=30), st.sets(st.text("abc", min_size=1, max_size=4)))
def test_segments_are_terms_in_order(text: str, terms: set[str]) -> None:
    place = 0
    for part in segment(text, dict.fromkeys(terms, ""), 4):
        assert place <= part.start < part.end <= len(text)
        assert text[part.start : part.end] in terms
        place = part.end
