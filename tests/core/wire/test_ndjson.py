"""Lines of JSON: one value, one line, whatever a reader takes for a line end."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.wire.json_lines import encode_line

TEXT = st.text() | st.text("ab\u2028\u2029\u0085\r\n\x0b\x0c\x1e\\u")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=5)


@settings(max_examples=100)
@given(OBJECTS)
def test_ndjson_object_is_one_line_and_reads_back_equal(value: dict[str, Any]) -> None:
    line = encode_line(value)
    assert json.loads(line) == value
    assert line.endswith(b"\n")
    assert line.decode().splitlines() == [line.decode()[:-1]]
    assert line.splitlines() == [line[:-1]]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        pytest.param({"a": "é"}, '{"a":"é"}\n'.encode(), id="UTF-8 stays"),
        # what Python takes for a line end
        ({"\u2028": "x\u2029y\u0085"}, b'{"\\u2028":"x\\u2029y\\u0085"}\n'),
        pytest.param(
            {"a": "x\ud83d", "b": ["\ude00"]},
            '{"a":"x\ufffd","b":["\ufffd"]}\n'.encode(),
            id="lone surrogates",
        ),
        pytest.param(
            {"\ud83d": {"a": ("\ud83d\ude00", 1, None)}},
            '{"\ufffd":{"a":["😀",1,null]}}\n'.encode(),
            id="a pair, and a half in a key",
        ),
    ],
)
def test_ndjson_line_of_a_value(value: dict[str, Any], line: bytes) -> None:
    assert encode_line(value) == line
