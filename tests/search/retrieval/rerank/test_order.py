"""A model's choice is merged with the ranking, once it has shown that it judges."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.types import Kind
from byok.search.retrieval.rank import RankedFile, Reasons
from byok.search.retrieval.rerank import Agreement, merge

WHY = Reasons(1.0, 0.5, 0.25, 1.0, 0.125)


def files(count: int) -> list[RankedFile]:
    return [
        RankedFile(n, f"{n}.py", Kind.CODE, 100.0 - n, (), WHY) for n in range(count)
    ]


@pytest.mark.parametrize(
    ("chosen", "order"),
    [
        ([], [0, 1, 2, 3, 4, 5, 6, 7]),
        ([0], [0, 1, 2, 3, 4, 5, 6, 7]),
        ([0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7]),
        ([4], [4, 0, 1, 2, 3, 5, 6, 7]),
        ([5], [0, 5, 1, 2, 3, 4, 6, 7]),
        ([2, 1], [2, 1, 0, 3, 4, 5, 6, 7]),
        ([7, 0, 3], [0, 7, 3, 1, 2, 4, 5, 6]),
    ],
    ids=str,
)
def test_choices_move_up_and_the_others_keep_their_order(
    chosen: list[int], order: list[int]
) -> None:
    assert [file.blob_id for file in merge(files(8), chosen)] == order


def test_scores_stay_in_their_places_and_moved_files_say_from_where() -> None:
    moved = merge(files(4), [2])
    assert [(f.blob_id, f.score, f.place) for f in moved] == [
        (2, 100.0, 3),
        (0, 99.0, 1),
        (1, 98.0, 2),
        (3, 97.0, 0),
    ]
    assert {file.reasons for file in moved} == {WHY}


@given(st.integers(1, 100), st.data())
def test_no_file_is_lost_or_doubled(count: int, data: st.DataObject) -> None:
    place = st.integers(0, min(count, 20) - 1)
    chosen = data.draw(st.lists(place, unique=True, max_size=5))
    before = files(count)
    after = merge(before, chosen)
    assert sorted(file.blob_id for file in after) == list(range(count))
    assert [file.score for file in after] == [file.score for file in before]
    others = [file.blob_id for file in after if file.blob_id not in chosen]
    assert others == sorted(others)


def test_a_judge_that_agrees_with_the_ranking_is_believed_after_four_choices() -> None:
    seen = Agreement()
    for _ in range(3):
        seen.add([1, 0, 2], 20)
        assert not seen.is_shown
    seen.add([14, 3, 0, 19], 20)
    assert seen.is_shown
    assert not seen.is_hopeless
    seen.forget()
    assert not seen.is_shown


def test_a_judge_that_loses_its_judgement_is_no_longer_believed() -> None:
    seen = Agreement()
    for _ in range(32):
        seen.add([0, 1, 2], 20)
    for _ in range(8):
        assert seen.is_shown
        seen.add([17, 18, 19], 20)
    for _ in range(16):
        seen.add([17, 18, 19], 20)
    assert not seen.is_shown
    assert seen.is_hopeless


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_short_list_shows_nothing(count: int) -> None:
    """All of it is among the first five: chance chooses as well."""
    seen = Agreement()
    for _ in range(40):
        seen.add([0], count)
        seen.add([], count)
    assert not seen.is_shown


def test_chance_is_hardly_ever_believed() -> None:
    dice = random.Random(1)
    believed = 0
    for _ in range(500):
        seen = Agreement()
        for _ in range(40):
            seen.add(dice.sample(range(20), dice.randint(1, 5)), 20)
            believed += seen.is_shown
    assert believed / (500 * 40) < 0.01
