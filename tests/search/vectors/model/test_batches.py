"""How many texts one request has."""

import pytest

from byok.search.vectors.model.embedder import (
    MOST_TEXTS,
    MOST_TOKENS,
    BatchSize,
    estimate_tokens,
)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 1), ("abcdef", 3), ("ü" * 3, 3), ("\ud83d", 1)], ids=ascii
)
def test_tokens_are_estimated_by_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_batch_has_64_texts_and_100_000_tokens_at_most() -> None:
    size = BatchSize()
    assert len(size.first_of(["a"] * 100)) == MOST_TEXTS
    assert size.first_of(["a"]) == ["a"]
    long = "a" * 3 * (MOST_TOKENS // 4)
    assert size.first_of([long] * 10) == [long] * 3


def test_a_text_above_the_limit_is_a_batch_of_its_own() -> None:
    long = "a" * 4 * MOST_TOKENS
    assert BatchSize().first_of([long, "b"]) == [long]


def test_after_a_timeout_batches_are_half_as_large_and_grow_again() -> None:
    size = BatchSize()
    size.note_timeout(64)
    assert len(size.first_of(["a"] * 100)) == 32
    size.note_answer(64, 0.1)
    assert len(size.first_of(["a"] * 100)) == 33
    for _ in range(100):
        size.note_answer(64, 0.1)
    assert len(size.first_of(["a"] * 100)) == MOST_TEXTS


def test_a_batch_is_never_empty() -> None:
    size = BatchSize()
    size.note_timeout(1)
    size.note_refusal(1)
    assert size.first_of(["a", "b"]) == ["a"]


def test_a_size_that_was_refused_is_not_sent_again() -> None:
    size = BatchSize()
    size.note_refusal(64)
    for _ in range(100):
        size.note_answer(64, 0.1)
    assert len(size.first_of(["a"] * 100)) == 32


def test_a_length_that_was_refused_is_not_sent_again() -> None:
    size = BatchSize()
    size.note_too_long(1000)
    assert size.longest == 750
    size.note_too_long(2000)
    assert size.longest == 750
    size.note_too_long(10)
    assert size.longest == 200


def test_slow_answers_make_batches_smaller_and_fast_ones_larger() -> None:
    size = BatchSize()
    seen = []
    for seconds in (1.5, 2.5, 2.5, 1.5, 0.5, 9.0, 9.0, 9.0):
        size.note_answer(len(size.first_of(["a"] * 100)), seconds)
        seen.append(len(size.first_of(["a"] * 100)))
    assert seen == [64, 32, 16, 16, 17, 8, 8, 8]


def test_a_slow_answer_to_few_texts_changes_nothing() -> None:
    size = BatchSize()
    size.note_answer(3, 9.0)
    assert len(size.first_of(["a"] * 100)) == MOST_TEXTS
