"""What is kept stays small, and what was used last stays."""

import pytest

from byok.core.bounded import BoundedMap, SaidOnce


def test_the_entries_that_were_used_last_stay() -> None:
    kept = BoundedMap[str, int](2)
    kept["a"], kept["b"] = 1, 2
    assert kept.get("a") == 1
    kept["c"] = 3
    assert (kept.get("b"), list(kept.items())) == (None, [("a", 1), ("c", 3)])
    kept["a"] = 4
    assert (kept.get("a"), len(kept), "c" in kept) == (4, 2, True)
    assert (kept.pop("a"), kept.pop("a"), list(kept)) == (4, None, ["c"])
    kept.clear()
    assert len(kept) == 0


@pytest.mark.parametrize("again", [False, True])
def test_a_map_is_limited_by_the_weight_of_its_entries(again: bool) -> None:
    kept = BoundedMap[int, bytes](10, lambda key, value: len(value))
    for key in range(3):
        kept[key] = bytes(4)
        if again:
            kept[key] = bytes(5)
            kept.pop(-1)
    assert list(kept) == [1, 2]
    kept[3] = bytes(99)
    assert list(kept) == [3]  # the newest stays
    kept[4] = bytes(1)
    assert list(kept) == [4]
    kept.clear()
    kept[5] = bytes(10)
    kept.pop(5)
    kept[6], kept[7] = bytes(5), bytes(5)
    assert list(kept) == [6, 7]


def test_a_sentence_is_new_once_and_only_so_many_are() -> None:
    said = SaidOnce(2)
    assert [said.is_new(name) for name in "abacab"] == [True, True, *[False] * 4]
