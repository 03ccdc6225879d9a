"""JSON as models write it: each liberty has a name, nothing cut is accepted."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from byok.core.wire.lenient_json import MAX_DEPTH, BrokenJson, parse_lenient, parse_run
from tests.fakes.values import OBJECTS, VALUES

COMMA = "trailing comma"
QUOTES = "single quotes"
LITERAL = "python literal"
ESCAPE = "python escape"
CONTROL = "raw control character in a string"
SPACE = "odd white space"
BRACKET = "missing closing bracket"
SURPLUS = "surplus closing bracket"


@pytest.mark.parametrize(
    ("text", "value", "rules"),
    [
        pytest.param(' {"a" : [1 , -2.5e3]}\r\n', {"a": [1, -2500.0]}, [], id="JSON"),
        pytest.param("[true, false, null]", [True, False, None], [], id="words"),
        pytest.param(r'"\"\\\/\b\f\n\r\tA"', '"\\/\b\f\n\r\tA', [], id="escapes"),
        pytest.param(r'"\ud83d\ude00"', "😀", [], id="an escaped pair"),
        pytest.param(r'"\ud83d."', "\ufffd.", [], id="an escaped half"),
        pytest.param(str(10**29 + 1), 10**29 + 1, [], id="a long integer"),
        pytest.param('{"a": 1,}', {"a": 1}, [COMMA], id="a comma in an object"),
        pytest.param("[1, ]", [1], [COMMA], id="a comma in an array"),
        pytest.param('{"a": [,], "b": {,}}', {"a": [], "b": {}}, [COMMA], id="commas"),
        pytest.param("{'a': 'b'}", {"a": "b"}, [QUOTES], id="single quotes"),
        pytest.param("""['a "b" c']""", ['a "b" c'], [QUOTES], id="double in single"),
        pytest.param("""["it's"]""", ["it's"], [], id="single in double"),
        pytest.param("[True, False, None]", [True, False, None], [LITERAL], id="names"),
        pytest.param(r"'it\'s'", "it's", [QUOTES, ESCAPE], id="an escaped apostrophe"),
        pytest.param(r"'\x41\U0001F600'", "A😀", [QUOTES, ESCAPE], id="Python's"),
        pytest.param('"a\nb\tc\x00"', "a\nb\tc\x00", [CONTROL], id="raw line ends"),
        pytest.param('\xa0{"a":\u20281}', {"a": 1}, [SPACE], id="odd white space"),
        pytest.param('{"a": [1, 2}', {"a": [1, 2]}, [BRACKET], id="no ] inside"),
        pytest.param('[{"a": 1]', [{"a": 1}], [BRACKET], id="no } inside"),
        pytest.param('[[[{"a": 1]]]', [[[{"a": 1}]]], [BRACKET], id="no } far inside"),
        pytest.param(
            "{'a': [True,], \"b\": 'x\ny'}",
            {"a": [True], "b": "x\ny"},
            [QUOTES, LITERAL, COMMA, CONTROL],
            id="many at once",
        ),
        pytest.param('{"a": 1, "a": 2}', {"a": 2}, [], id="duplicates, the last wins"),
    ],
)  # fmt: skip
def test_lenient_json_takes_and_names_a_liberty(
    text: str, value: Any, rules: list[str]
) -> None:
    assert parse_lenient(text) == (value, rules)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("  ", id="blanks"),
        pytest.param("{", id="an object left open"),
        pytest.param("[", id="an array left open"),
        pytest.param('{"a": "b\\"}', id="a quote that is escaped"),
        pytest.param('"\\u12', id="a code point left open"),
        pytest.param('"\\u12"', id="a short code point"),
        pytest.param('"\\uzzzz"', id="no code point"),
        pytest.param('"\\U00110000"', id="beyond the last code point"),
        pytest.param('"\\q"', id="an unknown escape"),
        pytest.param(r'"it\'s"', id="Python's apostrophe in double quotes"),
        pytest.param(r'"\x41"', id="Python's byte in double quotes"),
        pytest.param(r'"\U0001F600"', id="Python's character in double quotes"),
        pytest.param(r"'\/'", id="a slash, which Python does not escape"),
        pytest.param("[1, {'a': 2}", id="an array after an object"),
        pytest.param('{"a": {"b": 1}', id="only the inner brace is there"),
        pytest.param('{"a": tru}', id="an unknown word"),
        pytest.param("[TRUE]", id="a shouted word"),
        pytest.param("[undefined]", id="JavaScript's undefined"),
        pytest.param("[NaN]", id="NaN"),
        pytest.param("1e999", id="a number too large"),
        pytest.param("01", id="a leading zero"),
        pytest.param("+1", id="a plus sign"),
        pytest.param("0x1F", id="hexadecimal"),
        pytest.param("[1٣]", id="digits of another script"),
        pytest.param("{a: 1}", id="a bare key"),
        pytest.param("{1: 2}", id="a number as key"),
        pytest.param("{,1}", id="a comma and then something"),
        pytest.param("[1,,2]", id="two commas"),
        pytest.param("[1 2]", id="no comma"),
        pytest.param('{"a" 1}', id="no colon"),
        pytest.param("(1, 2)", id="a tuple"),
        pytest.param("// no\n{}", id="a comment"),
    ],
)
def test_lenient_json_refuses_what_is_truncated_or_unclear(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_lenient(text)


@pytest.mark.parametrize(
    ("text", "values", "rules"),
    [
        pytest.param('{"a": 1}', [{"a": 1}], [], id="one"),
        pytest.param('{} {"a": 1}\n{"a": 1}', [{}, {"a": 1}, {"a": 1}], [], id="more"),
        pytest.param('{"a": 1}}', [{"a": 1}], [SURPLUS], id="a brace too many"),
        pytest.param('{"a": [1]}\n] }', [{"a": [1]}], [SURPLUS], id="several brackets"),
        pytest.param("{}{}]", [{}, {}], [SURPLUS], id="a bracket after two"),
    ],
)
def test_lenient_json_reads_values_in_a_row(
    text: str, values: list[Any], rules: list[str]
) -> None:
    assert parse_run(text) == (values, rules)


@pytest.mark.parametrize(
    ("text", "at", "cut"),
    [
        pytest.param(r'{"a": "\d+", "b": 1}', 7, False, id="an escape that is none"),
        pytest.param('{"a": 1}, "b": 2}', 8, False, id="a brace too early"),
        pytest.param('{"a": [{"b": 1]}]', 16, False, id="brackets that do not match"),
        pytest.param('{"a": "b"c"}', 9, False, id="a quote that is not escaped"),
        pytest.param("rm -rf /", 0, False, id="no JSON"),
        pytest.param("ls", 0, False, id="one word"),
        pytest.param('{"a": "b', 8, True, id="a string left open"),
        pytest.param('{"a": 1', 7, True, id="a missing last brace"),
        pytest.param('{"a": "\\u00', 7, True, id="an escape left open"),
        pytest.param('{"a": "\\', 7, True, id="a backslash alone"),
        pytest.param('{"a": tru', 6, True, id="a word left open"),
        pytest.param('{"a": -', 6, True, id="a sign alone"),
        pytest.param('{"a": 1.', 7, True, id="a number left open"),
        pytest.param('{"a": 1}{"a"', 12, True, id="the second of two"),
    ],
)
def test_lenient_json_tells_truncated_from_broken(
    text: str, at: int, cut: bool
) -> None:
    with pytest.raises(BrokenJson) as caught:
        parse_run(text)
    assert (caught.value.at, caught.value.cut) == (at, cut)


@given(OBJECTS, st.sampled_from([json.dumps, repr]))
def test_lenient_json_calls_every_strict_prefix_of_an_object_truncated(
    value: Any, write: Any
) -> None:
    text = write(value)
    for end in range(1, len(text)):
        with pytest.raises(BrokenJson) as caught:
            parse_run(text[:end])
        assert caught.value.cut or re.search(r"\\[xU]", text)


def test_lenient_json_depth_is_limited() -> None:
    deep = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    assert parse_lenient(deep)[1] == []
    with pytest.raises(ValueError, match="deep"):
        parse_lenient(f"[{deep}]")


@settings(max_examples=120)
@given(VALUES, st.booleans(), st.none() | st.integers(0, 2))
def test_what_json_writes_needs_no_liberty(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert parse_lenient(text) == (value, [])


@settings(max_examples=120)
@given(VALUES)
def test_lenient_json_reads_python_literals(value: Any) -> None:
    text = repr(value)
    try:
        read, rules = parse_lenient(text)
    except BrokenJson:
        assert re.search(r'"[^"]*\\[xU]', text), (
            "only Python's escapes in double quotes"
        )
        return
    assert read == value
    assert set(rules) <= {QUOTES, LITERAL, ESCAPE}


@settings(max_examples=120)
@given(st.text("{}[]\"',:\\u0x1eE-. tTrueNn\n\xa0\x0c", max_size=20))
@example('{\xa0"a":\x0c1}')
def test_without_a_liberty_it_is_json(text: str) -> None:
    try:
        value, rules = parse_lenient(text)
    except ValueError:
        return
    if not rules:
        assert json.loads(text) == value
