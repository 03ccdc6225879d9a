"""Blobs that questions were about, the most asked first."""

from byok.search.vectors.filling import AskedBlobs


def test_the_most_asked_come_first_then_the_latest() -> None:
    asked = AskedBlobs()
    asked.note([1, 2, 3])
    asked.note([3, 4])
    assert asked.most() == [3, 4, 1, 2]


def test_only_the_last_ones_are_kept() -> None:
    asked = AskedBlobs()
    asked.note(range(400))
    asked.note(range(1000, 1300))
    kept = asked.most()
    assert len(kept) == 500
    assert kept[:300] == list(range(1000, 1300))
    asked.note(range(5000, 9000))
    assert asked.most() == list(range(5000, 5500))
