"""JSON with comments, read into nodes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.client_settings.jsonc_nodes import parse_nodes, plain_value, trivia_end
from tests.fakes.settings_files import STRANGE


def value_of(text: str) -> Any:
    node = parse_nodes(text)
    assert node is not None
    return plain_value(text, node)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=40)
@given(VALUES)
def test_jsonc_reads_what_the_standard_library_writes(value: Any) -> None:
    assert value_of(json.dumps(value, indent=1, ensure_ascii=False)) == value


@pytest.mark.parametrize("text", ["", " \n\t", "// only this", "/* a */ // b\n"])
def test_jsonc_without_a_value_is_no_node(text: str) -> None:
    assert parse_nodes(text) is None


def test_jsonc_reads_comments_and_last_commas() -> None:
    value = value_of(STRANGE)
    assert value["regex"] == "^//.*/\\*$"
    assert value["between"] == "x"
    assert value["window.title"].endswith('"quoted" \\')
    assert value_of("[1, /* , */ 2, // ,\n]") == [1, 2]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"a": 1', "line 1: a comma or a closing bracket is missing"),
        ('{\n"a": 1\n"b": 2}', "line 3: a comma or"),
        ('{"a" 1}', "line 1: there is no colon"),
        ("{a: 1}", "line 1: there is no name in quotes"),
        ("{'a': 1}", "line 1: there is no name in quotes"),
        ('{"a": }', "line 1: there is no value"),
        ('{"a": 01}', "line 1: there is no value"),
        ('{"a": 1.}', "line 1: there is no value"),
        ('{"a": nul}', "line 1: there is no value"),
        ('{"a": "b\n"}', "line 1: this text does not end"),
        ("{/* for ever }", "line 1: there is no name"),
        ('{"a": 1,, }', "line 1: there is no name"),
        ("[,]", "line 1: there is no value"),
        ("{} {}", "line 1: there is something behind"),
        ('{"\\x": 1}', "line 1: a name has an escape"),
        ("[" * 5000 + "]" * 5000, "line 1: it is nested too deeply"),
    ],
)
def test_jsonc_that_cannot_be_read_is_told_with_its_line(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_nodes(text)


def test_jsonc_nodes_know_their_places() -> None:
    text = ' { "a": [1, {}], "b": 2, } '
    node = parse_nodes(text)
    assert node is not None
    assert node.members is not None
    first, second = node.members
    assert text[node.start : node.end] == '{ "a": [1, {}], "b": 2, }'
    assert text[first.start : first.node.end] == '"a": [1, {}]'
    assert text[first.comma] == text[second.comma] == ","
    assert [text[i.start : i.end] for i in first.node.items or ()] == ["1", "{}"]


@pytest.mark.parametrize("text", ["/*" * 50_000, "/" * 200_000, '"\\' * 50_000])
def test_jsonc_of_a_stranger_is_read_in_linear_time(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse_nodes("{" + text)


def test_trivia_ends_before_what_is_no_comment() -> None:
    assert trivia_end(" /* a */ // b\n /x", 0) == 15
