"""Lines of JSON: every slicing, every line end, what servers add, what is sent."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.core.stage import drain
from byok.core.wire.json_lines import (
    MAX_DOCUMENT_BYTES,
    MAX_LINE_BYTES,
    JsonLines,
    encode_line,
)
from tests.fakes.values import CUTS, cut

BOM = b"\xef\xbb\xbf"
INDENTED = json.dumps({"a": [1, {"b": "c\\n"}]}, indent=2).encode()


def read(pieces: Iterable[bytes]) -> tuple[list[Any], str]:
    """Give the values and the code of the failure that ended them, "" without one."""
    values: list[Any] = []
    try:
        for value in drain(JsonLines(), pieces):
            values.append(value)
    except UpstreamGarbled as error:
        return values, error.code
    return values, ""


ANSWERS: dict[str, tuple[bytes, list[Any], str]] = {
    "nothing": (b"", [], ""),
    "only blank lines": (b"\n\r\n \n\t", [], ""),
    "LF": (b'{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}], ""),
    "CRLF": (b'{"a": 1}\r\n{"b": 2}\r\n', [{"a": 1}, {"b": 2}], ""),
    "no last line end": (b'{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}], ""),
    "blank lines between": (b'\n{"a": 1}\n\n \n[2]\n', [{"a": 1}, [2]], ""),
    "BOM": (BOM + b'{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}], ""),
    "a BOM in a later line": (b"1\n" + BOM + b"2\n", [1], "upstream_not_json"),
    "no line end but LF": ('"a\u2028b\u0085c"\n'.encode(), ["a\u2028b\u0085c"], ""),
    "halves of an emoji": (
        b'"\\ud83d"\n"\\ude00"\n',
        ["\ud83d", "\ude00"],
        "",
    ),
    "an indented document": (INDENTED, [{"a": [1, {"b": "c\\n"}]}], ""),
    "an indented array after a BOM": (BOM + b"[\n1,\n2]\n\n", [[1, 2]], ""),
    "a document that breaks off": (b'{\n"a": 1', [], "upstream_not_json"),
    "a line that breaks off": (b'{"a": 1}\n{"b"', [{"a": 1}], "upstream_not_json"),
    "a line that is no JSON": (b"1\noops\n2\n", [1], "upstream_not_json"),
    "an indented value in the middle": (b"1\n{\n}\n", [1], "upstream_not_json"),
    "a web page": (b" <html>\n<body>", [], "upstream_not_json"),
    "text": (b"Internal error\n", [], "upstream_not_json"),
    "deeper than anything": (b"[" * 20_000, [], "upstream_not_json"),
}
TABLE = pytest.mark.parametrize(
    ("answer", "values", "code"), list(ANSWERS.values()), ids=list(ANSWERS)
)


@TABLE
def test_lines_of_json_cut_once_anywhere(
    answer: bytes, values: list[Any], code: str
) -> None:
    for place in range(min(len(answer), 200) + 1):
        assert read([answer[:place], answer[place:]]) == (values, code), place


LINES = st.lists(
    st.sampled_from(
        [
            *(b"{}", b'{"a":\n1}', b"[", b"1", b'"\xe2\x80\xa8"', b'"\\ud83d"'),
            *(b"\n", b"\r\n", b"\r", b" ", b"x", b"<", BOM, b"\xff"),
        ]
    ),
    max_size=12,
).map(b"".join)


@given(LINES, CUTS)
def test_any_slicing_of_json_lines_is_equal(answer: bytes, places: list[int]) -> None:
    assert read(cut(answer, places)) == read([answer])


VALUES = st.lists(
    st.dictionaries(st.text(), st.text() | st.integers(-(2**60), 2**60), max_size=3),
    max_size=5,
)


@given(VALUES, CUTS)
def test_what_was_written_as_json_lines_is_read(
    values: list[Any], places: list[int]
) -> None:
    answer = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    assert read(cut(answer, places)) == (values, "")


def test_web_page_as_json_lines_names_the_cure() -> None:
    with pytest.raises(UpstreamGarbled, match="a web page") as caught:
        list(JsonLines().feed(b"<!DOCTYPE html>\n"))
    assert "base_url" in caught.value.hint


@pytest.mark.parametrize("size", [2**16, MAX_LINE_BYTES + 1])
def test_an_endless_line_is_not_kept(size: int) -> None:
    stage, fed = JsonLines(), 0
    with pytest.raises(UpstreamGarbled) as caught:
        while fed <= 2 * MAX_LINE_BYTES:
            assert list(stage.feed(b" " * size)) == []
            fed += size
    assert caught.value.code == "upstream_event_too_large"
    assert fed <= MAX_LINE_BYTES


def test_json_lines_refuse_an_endless_document() -> None:
    stage, fed = JsonLines(), 0
    assert list(stage.feed(b"{\n")) == []
    with pytest.raises(UpstreamGarbled) as caught:
        while fed <= 2 * MAX_DOCUMENT_BYTES:
            assert list(stage.feed(b" " * 2**19 + b"\n")) == []
            fed += 2**19 + 1
    assert caught.value.code == "upstream_event_too_large"
    assert fed <= MAX_DOCUMENT_BYTES


# Lines as byok writes them: one value is one line for every reader


ODD_TEXT = st.text() | st.text("ab\u2028\u2029\u0085\r\n\x0b\x0c\x1e\\u")
ODD_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ODD_TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(ODD_TEXT, inner, max_size=4)
    ),
    max_leaves=8,
)
ODD_OBJECTS = st.dictionaries(ODD_TEXT, ODD_VALUES, max_size=5)


@settings(max_examples=100)
@given(ODD_OBJECTS)
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
