"""Strings of JSON within any text, with the keys above them."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.features.capture.scrub import find_strings
from tests.fakes.linear import check_linear

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def leaves(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [leaf for item in value for leaf in leaves(item)]
        case dict():
            return [leaf for k, v in value.items() for leaf in (k, *leaves(v))]
        case _:
            return []


@given(JSON, st.sampled_from([None, 2]))
def test_every_string_is_found_where_it_stands(value: object, indent: int) -> None:
    text = json.dumps(value, indent=indent)
    found = [json.loads(f'"{text[s.start : s.end]}"') for s in find_strings(text)]
    assert found == leaves(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": "x"}}', [(("a", "b"), "x")]),
        ('{"a": [{"b": "x"}, "y"]}', [(("a", "b"), "x"), (("a",), "y")]),
        ('{"a":"x"}\n{"b":"y"}\n', [(("a",), "x"), (("b",), "y")]),
        ('data: {"a":"x"}\n\ndata: {"b":"y"}', [(("a",), "x"), (("b",), "y")]),
        ('data: {"a":["x\ndata: {"b":"y"}', [(("a",), "x"), (("b",), "y")]),
        ('{"a":"x\\"y"}', [(("a",), 'x\\"y')]),
        ("no JSON", []),
        ("]}]}:,,{", []),
    ],
)
def test_strings_have_the_keys_above_them(
    text: str, expected: list[tuple[tuple[str, ...], str]]
) -> None:
    found = [
        (s.path, text[s.start : s.end]) for s in find_strings(text) if not s.is_key
    ]
    assert found == expected


@given(st.text(alphabet='{}[]":,\\a\n'))
def test_broken_json_ends_and_stays_within_the_text(text: str) -> None:
    for string in find_strings(text):
        assert 0 <= string.start <= string.end <= len(text)


@pytest.mark.parametrize("unit", ["{", '["', '"\\', '{"a":', "\n", ' "a" '])
def test_the_time_grows_with_the_length(unit: str) -> None:
    check_linear(lambda size: list(find_strings(unit * size)), 20_000)


@pytest.mark.parametrize("letter", ["B", "\\\\"])
def test_a_long_string_takes_no_memory_for_each_letter(letter: str) -> None:
    text = '{"a":"' + letter * 300_000 + '"}'
    tracemalloc.start()
    try:
        found = [string.end - string.start for string in find_strings(text)]
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert found == [1, len(letter) * 300_000]
