"""What is kept stays small, and what was used last stays."""

import pytest

from byok.core.bounded import BoundedMap, SaidOnce, split_into_batches


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
    said = SaidOnce(2, forgets=True)
    assert [said.is_new(name) for name in "abbca"] == [True, True, False, True, True]


class Vanishing:
    """A key that another thread removes while its value is being returned."""

    lookups_left = 99

    def __init__(self, kept: BoundedMap["Vanishing", int]) -> None:
        self.kept = kept

    def __hash__(self) -> int:
        self.lookups_left -= 1
        if self.lookups_left == 0:
            self.kept.clear()
        return 7


def test_a_value_is_returned_although_its_key_was_just_removed() -> None:
    kept = BoundedMap[Vanishing, int](2)
    key = Vanishing(kept)
    kept[key] = 1
    kept[Vanishing(kept)] = 2
    key.lookups_left = 2  # for the value, and to count it as used
    assert kept.get(key) == 1
    assert len(kept) == 0


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [([1] * 60, [24, 24, 12]), ([100, 100, 1, 500, 1], [2, 2, 1]), ([], [])],
    ids=str,
)
def test_batches_are_bounded_by_items_and_by_size(
    sizes: list[int], lengths: list[int]
) -> None:
    batches = [*split_into_batches(sizes, int, max_size=128, max_items=24)]
    assert [len(batch) for batch in batches] == lengths
    assert [size for batch in batches for size in batch] == sizes
