"""Arguments that come in pieces."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.dialects.gemini.answer import PartialArguments
from tests.fakes.linear import check_linear
from tests.fakes.values import VALUES


def join(*pieces: Any) -> Any:
    arguments = PartialArguments()
    for piece in pieces:
        arguments.feed([piece])
    return json.loads(arguments.text())


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([], {}),
        ([("$.a", "stringValue", "x"), ("$.a", "stringValue", "y")], {"a": "xy"}),
        ([("$.a[0].b", "numberValue", 0.5)], {"a": [{"b": 0.5}]}),
        (
            [("$.a[0]", "numberValue", 3.0), ("$.a[1]", "numberValue", 4.5)],
            {"a": [3, 4.5]},
        ),
        ([("$.a[0][0]", "boolValue", False)], {"a": [[False]]}),
        (
            [
                ("$.a", "stringValue", "x"),
                ("$.b", "stringValue", "y"),
                ("$.a", "nullValue", "NULL_VALUE"),
            ],
            {"a": None, "b": "y"},
        ),
        ([("$['x.y']['']", "nullValue", "NULL_VALUE")], {"x.y": {"": None}}),
        ([('$["it\\"s"]', "stringValue", "z")], {'it"s': "z"}),
        ([("$.größe", "numberValue", 1e300)], {"größe": 1e300}),
    ],
)
def test_pieces_are_placed_by_their_paths(
    pieces: list[tuple[str, str, Any]], whole: Any
) -> None:
    assert (
        join(*({"jsonPath": path, kind: value} for path, kind, value in pieces))
        == whole
    )


@pytest.mark.parametrize(
    "path", ["$", "$..a", "$.a[-1]", "$.a[1]", "a.b", "$.x.y", "$[0]",
             "$.l.a", "$" + ".a" * 65],
)  # fmt: skip
def test_pieces_without_a_place_are_refused_or_ignored(path: str) -> None:
    before = {"jsonPath": "$.x", "stringValue": "s"}
    items = {"jsonPath": "$.l[0]", "stringValue": "s"}
    piece = {"jsonPath": path, "stringValue": "v"}
    if path == "$":
        assert join(before, piece) == {"x": "s"}
        return
    with pytest.raises(UpstreamGarbled):
        join(before, items, piece)


def test_a_call_that_never_ended_is_no_json() -> None:
    arguments = PartialArguments()
    arguments.feed([{"jsonPath": "$.a", "stringValue": "x"}, 7, {"jsonPath": 7}])
    assert arguments.text(is_whole=False) == '{"a":"x"'


@given(VALUES)
def test_anything_else_is_no_piece(value: Any) -> None:
    arguments = PartialArguments()
    try:
        arguments.feed(value)
        arguments.feed([value])
    except UpstreamGarbled:
        return
    json.loads(arguments.text())


@given(st.text(max_size=20))
def test_any_path_is_placed_or_refused(path: str) -> None:
    try:
        join({"jsonPath": f"${path}", "stringValue": "x"})
    except UpstreamGarbled:
        return


def test_a_long_string_in_many_pieces_takes_linear_time() -> None:
    def joined(size: int) -> int:
        arguments = PartialArguments()
        piece = [{"jsonPath": "$.text", "stringValue": "x" * 20}]
        for _ in range(size):
            arguments.feed(piece)
        return len(arguments.text())

    check_linear(joined, 20_000)
    assert joined(50) == 50 * 20 + len('{"text":""}')
