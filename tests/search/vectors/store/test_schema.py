"""The ids of vectors."""

from byok.search.vectors.store.spaces import first_id


def test_ids_of_vectors_of_two_spaces_do_not_meet() -> None:
    assert first_id(1) + 2**32 - 1 < first_id(2)
    assert first_id(2**30) < 2**63
