"""Fields are read whatever their spelling and type, and nothing raises."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment import body
from tests.fakes.bodies import ANYTHING


@pytest.mark.parametrize(
    ("given_body", "found"),
    [
        ({"toolUseId": "a"}, "a"),
        ({"tool_use_id": None, "toolUseId": "a"}, "a"),
        ({"tool_use_id": "a", "toolUseId": "b"}, "a"),
        ({"tool_use_id": 7}, "7"),
        ({"tool_use_id": True}, ""),
        ({}, ""),
    ],
)
def test_body_text_is_a_string_or_a_number(given_body: Any, found: str) -> None:
    assert body.text(given_body, "tool_use_id") == found


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (3, 3), (3.0, 3), ("3", 3), (" -3 ", -3), ("٣", 3), ("\x1e0", 0),
        (3.5, -1), ("3.5", -1), ("--3", -1), ("-", -1), ("", -1), ("²", -1),
        (True, -1), (None, -1), ([3], -1), ({}, -1), ("9" * 400, -1),
        (float("inf"), -1), (float("nan"), -1), (10**300, 10**300),
    ],
)  # fmt: skip
def test_body_integer_is_whole_or_the_default(written: Any, number: int) -> None:
    assert body.integer({"n": written}, "n", -1) == number


@pytest.mark.parametrize(
    ("written", "is_set"),
    [
        (True, True), (1, True), ("true", True), (" TRUE ", True),
        (False, False), (0, False), (2, False), ("yes", False), ("1", False),
        (None, False), ([], False), ([1], False),
    ],
)  # fmt: skip
def test_body_flag_is_true_in_few_spellings(written: Any, is_set: bool) -> None:
    assert body.flag({"silent": written}, "silent") is is_set


def test_body_containers_of_the_wrong_type_count_as_absent() -> None:
    odd = {"a": "x", "b": {"c": 1}, "d": [1, {"e": 2}, None, "s", "s"], "f": ["t", "s"]}
    assert body.mapping(odd, "a", "b") == {"c": 1}
    assert body.mapping(odd, "d") == {}
    assert body.items(odd, "b", "d") == odd["d"]
    assert body.objects(odd, "d") == [{"e": 2}]
    assert body.strings(odd, "d", "f", "a") == ["s", "t"]


READERS: list[tuple[Callable[[Any, str], Any], type]] = [
    (body.text, str),
    (body.first_text, str),
    (body.integer, int),
    (body.flag, bool),
    (body.mapping, dict),
    (body.items, list),
    (body.objects, list),
    (body.strings, list),
]


@given(st.sampled_from(["x_y", "xY"]), ANYTHING)
def test_body_readers_give_their_own_type_for_any_json(name: str, given_: Any) -> None:
    for read, kind in READERS:
        assert type(read({name: given_}, "x_y")) is kind


def test_what_was_read_before_is_not_read_again_until_room_is_short() -> None:
    read: list[Any] = []
    has_room = [True]

    def note(given: Any) -> Any:
        read.append(given)
        return given

    keeping = body.CachedReader(note, 10_000, lambda: has_room[0])
    for _ in range(3):
        assert keeping({"n": 1, "text": "half an emoji: \ud83d"})["n"] == 1
    assert len(read) == 1
    for other in (1.0, True, "1"):  # equal to Python, and yet another object
        assert keeping({"n": other})["n"] is other
    assert len(read) == 4
    for n in range(100):
        keeping({"n": n, "long": "x" * 1000})
    keeping({"n": 1.0})
    assert len(read) == 105, "what was not used for longest makes room"
    has_room[0] = False
    for _ in range(2):
        keeping({"n": "new"})
    keeping({"n": 1.0})
    assert len(read) == 108, "nothing is kept where memory is short"


def test_texts_beyond_ascii_count_what_python_takes_for_them() -> None:
    for letter, times in (("x", 1), ("\U0001f6e0", 2)):
        read: list[Any] = []

        def note(given: Any, read: list[Any] = read) -> Any:
            read.append(given)
            return given

        keeping = body.CachedReader(note, 20_000)
        items = [{"n": n, "said": letter + "x" * 1000} for n in range(5)]
        for item in (*items, *items):
            keeping(item)
        assert len(read) == times * len(items)
