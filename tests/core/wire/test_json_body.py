"""JSON of clients: what is read, what is refused, halves of emoji, one new string."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.errors import BadRequest
from byok.core.wire.json_body import (
    MAX_DEPTH,
    MAX_OBJECTS,
    SurrogateBuffer,
    join_surrogates,
    parse_body,
    parse_json,
    with_string,
    write_json,
)
from tests.fakes.program import ROOT
from tests.fakes.values import CUTS, OBJECTS, cut


def nested(depth: int, pair: str = "[]") -> bytes:
    """A body of that depth, its own braces counted."""
    opener = '{"a":' if pair == "{}" else "["
    inner = opener * (depth - 1) + "1" + pair[1] * (depth - 1)
    return f'{{"a":{inner}}}'.encode()


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        pytest.param(b"", {}, id="an empty body"),
        pytest.param(b' {"a": 1} \n', {"a": 1}, id="blanks around"),
        (b'{"message":"a","message":"b"}', {"message": "b"}),  # duplicates
        (b'{"m":"a","m":"\\ud83d"}', {"m": "\ufffd"}),  # duplicates, cleaned
        (b'{"m":"hi \\ud83d!"}', {"m": "hi \ufffd!"}),  # an escaped high half
        pytest.param(b'{"m":"\\ud83d\\ude00"}', {"m": "😀"}, id="an escaped pair"),
        pytest.param(
            b'{"\\ud83d":[{"a":["\\ud83d"]},{"b":"\\ud83d","c":"\\ud83d\\ude00"},7]}',
            {"\ufffd": [{"a": ["\ufffd"]}, {"b": "\ufffd", "c": "😀"}, 7]},
            id="halves everywhere",
        ),
        pytest.param(b'{"a":-0,"b":1e-400}', {"a": 0, "b": 0.0}, id="tiny numbers"),
        pytest.param(b'{"a":1180591620717411303424}', {"a": 2**70}, id="2^70"),
    ],
)
@pytest.mark.case("B42", "B44")
def test_a_body_is_read(raw: bytes, body: dict[str, Any]) -> None:
    assert parse_body(raw) == body


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        pytest.param(b"{", 400, "bad_json", id="only an opening brace"),
        pytest.param(b"{}{}", 400, "bad_json", id="two objects"),
        pytest.param(b"[]", 422, "not_an_object", id="an array"),
        pytest.param(b"null", 422, "not_an_object", id="null"),
        pytest.param(b'"\\ud83d"', 422, "not_an_object", id="half an emoji"),
        pytest.param(b"\xef\xbb\xbf{}", 400, "bad_json", id="a BOM"),
        pytest.param('{"a":1}'.encode("utf-16"), 400, "bad_json", id="UTF-16"),
        pytest.param(b'{"a":"\xff"}', 400, "bad_json", id="no UTF-8"),
        pytest.param(b'{"a":"\xc0\xaf"}', 400, "bad_json", id="overlong UTF-8"),
        pytest.param(b'{"a":"\xed\xa0\xbd"}', 400, "bad_json", id="CESU-8"),
        pytest.param(b'{"a":"x\x01"}', 400, "bad_json", id="a raw control byte"),
        pytest.param(b'{"a":NaN}', 400, "bad_json", id="NaN"),
        pytest.param(b'{"a":-Infinity}', 400, "bad_json", id="-Infinity"),
        pytest.param(b'{"a":1e999}', 400, "bad_json", id="1e999"),
        pytest.param(b'{"a":"\\ud83d","b":-1e999}', 400, "bad_json", id="-1e999"),
        pytest.param(b"{'a': 1}", 400, "bad_json", id="single quotes"),
        pytest.param(b'{"a":1,}', 400, "bad_json", id="a trailing comma"),
        pytest.param(nested(MAX_DEPTH + 1), 422, "json_too_complex", id="129 lists"),
        pytest.param(nested(129, "{}"), 422, "json_too_complex", id="129 objects"),
        pytest.param(nested(1_025), 422, "json_too_complex", id="1,025 levels"),
        pytest.param(b"[" * 5_000_000, 400, "bad_json", id="5 million brackets"),
        # too many objects
        (b'{"a":[' + b"{}," * MAX_OBJECTS + b"1]}", 413, "body_too_large"),
        # too many fields
        (b"{" + b'"a":1,' * (4 * MAX_OBJECTS + 4) + b'"b":1}', 413, "body_too_large"),
        (b'{"a":' * 1_000_000, 413, "body_too_large"),  # a million braces
    ],
)
@pytest.mark.case("B39", "B40", "B41", "B43", "B46")
def test_a_body_is_refused(raw: bytes, status: int, code: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_body(raw)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert len(caught.value.sentence) < 200


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_json_body_allowed_depth_is_read(pair: str) -> None:
    assert parse_body(nested(MAX_DEPTH, pair)) == json.loads(nested(MAX_DEPTH, pair))


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        pytest.param('{"é": tru}'.encode(), 7, id="in the text"),
        pytest.param(b'{"a": "\xff"}', 7, id="in the encoding"),
        pytest.param('{"é": "x\n"}'.encode(), 9, id="in a string"),
        pytest.param(b"\xef\xbb\xbf{}", 0, id="at its start"),
    ],
)
def test_json_body_refusal_names_the_byte(raw: bytes, place: int) -> None:
    with pytest.raises(BadRequest, match=rf"at byte {place}\b"):
        parse_body(raw)


@settings(max_examples=100)
@given(OBJECTS)
def test_what_json_writes_is_read_back(value: dict[str, Any]) -> None:
    for ascii_only in (True, False):
        raw = json.dumps(value, ensure_ascii=ascii_only).encode()
        assert parse_json(raw) == json.loads(raw, parse_int=_as_read)


def _as_read(digits: str) -> int | float:
    """Integers beyond 64 bits are read as the nearest float."""
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else float(number)


@pytest.mark.parametrize("value", [{"a": 2**70}, {"a": "\ud83d"}, {"a": ["é", 1.5]}])
def test_json_that_was_read_can_be_written(value: Any) -> None:
    assert json.loads(write_json(value)) == value


LITTLE_MEMORY = """
import resource
from pathlib import Path
from tests.fakes.program import ROOT
from byok.core.wire.json_body import parse_body
raw = b'{"x": "%b"}' % (b"y" * 40 * 2**20)
pages = int(Path("/proc/self/statm").read_text().split()[0])
room = pages * resource.getpagesize() + 20 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (room, room))
try:
    parse_body(raw)
except MemoryError:
    print("no memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_body_that_memory_has_no_room_for_does_not_end_the_process() -> None:
    command = [sys.executable, "-c", LITTLE_MEMORY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "no memory\n"), done.stderr


# Emoji in halves: joined across pieces, U+FFFD when the other half never comes


HIGH, LOW = "\ud83d", "\ude00"
LOST = "\ufffd"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("plain é 😀", "plain é 😀", id="whole characters"),
        pytest.param(f"a{HIGH}{LOW}b", "a😀b", id="a pair"),
        pytest.param(f"a{HIGH}b", f"a{LOST}b", id="a high half"),
        pytest.param(f"{LOW}b", f"{LOST}b", id="a low half"),
        pytest.param(f"{LOW}{HIGH}", LOST * 2, id="the wrong order"),
        pytest.param(f"{HIGH}{HIGH}{LOW}", f"{LOST}😀", id="a half before a pair"),
    ],
)
def test_surrogate_halves_are_joined_or_replaced(text: str, clean: str) -> None:
    assert join_surrogates(text) == clean


@pytest.mark.parametrize(
    ("pieces", "given_out", "rest"),
    [
        pytest.param(["a", "b"], ["a", "b"], "", id="nothing to hold"),
        pytest.param([f"a{HIGH}", f"{LOW}b"], ["a", "😀b"], "", id="an emoji in two"),
        pytest.param([HIGH, "", LOW], ["", "", "😀"], "", id="an empty piece between"),
        pytest.param([HIGH, "b"], ["", f"{LOST}b"], "", id="a half and then text"),
        pytest.param([HIGH, HIGH], ["", LOST], LOST, id="two high halves"),
        pytest.param(["a", LOW], ["a", LOST], "", id="a low half alone"),
        pytest.param([f"a{HIGH}"], ["a"], LOST, id="the end after a half"),
    ],
)
def test_a_high_surrogate_is_held_back(
    pieces: list[str], given_out: list[str], rest: str
) -> None:
    buffer = SurrogateBuffer()
    assert [buffer.feed(piece) for piece in pieces] == given_out
    assert buffer.flush() == rest
    assert buffer.flush() == ""


@given(st.text(f"ab{HIGH}{LOW}😀"), CUTS)
def test_surrogates_any_slicing_gives_the_same_text(
    text: str, places: list[int]
) -> None:
    buffer = SurrogateBuffer()
    out = "".join(buffer.feed(piece) for piece in cut(text, places))
    assert out + buffer.flush() == join_surrogates(text)


# One string of an object changes, and no other byte


def spliced(raw: bytes, value: str = "new") -> bytes:
    return with_string(raw, parse_body(raw), "model", value)


@pytest.mark.parametrize(
    ("raw", "changed"),
    [
        (b'{"model":"a","x":1.0}', b'{"model":"new","x":1.0}'),
        (b' { "x" : 1e5 , "model" :\n "a" } ', b' { "x" : 1e5 , "model" :\n "new" } '),
        (b'{"m\\u006fdel":"a"}', b'{"m\\u006fdel":"new"}'),
        (b'{"model":"a","model":"b"}', b'{"model":"a","model":"new"}'),
        (
            b'{"a":{"model":"x"},"b":["model","y"],"model":"a"}',
            b'{"a":{"model":"x"},"b":["model","y"],"model":"new"}',
        ),
        (b'{"x":"model","model":"a"}', b'{"x":"model","model":"new"}'),
        (b'{"model\\"":"x","model":""}', b'{"model\\"":"x","model":"new"}'),
        (
            b'{"n":1180591620717411303424,"s":"\\ud83d","model":"a"}',
            b'{"n":1180591620717411303424,"s":"\\ud83d","model":"new"}',
        ),
    ],
)
def test_json_splice_changes_only_the_string(raw: bytes, changed: bytes) -> None:
    assert spliced(raw) == changed


@pytest.mark.parametrize(
    ("raw", "changed"),
    [
        (b"", b'{"model":"new"}'),
        (b"{}", b'{"model":"new"}'),
        (b" { } ", b' {"model":"new" } '),
        (b'{"x":[{}]}', b'{"model":"new","x":[{}]}'),
    ],
)
def test_json_splice_puts_a_missing_member_first(raw: bytes, changed: bytes) -> None:
    assert spliced(raw) == changed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "a", '"']), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["model", "a", "b"]), JSON, max_size=3),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_json_splice_reads_as_the_object_with_the_new_string(
    body: dict[str, Any], value: str, indent: int | None, ascii_only: bool
) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=ascii_only)
    changed = spliced(raw.encode("utf-8", "replace"), value)
    expected = json.loads(raw.encode("utf-8", "replace"))
    assert json.loads(changed) == {**expected, "model": value}


@pytest.mark.parametrize("other", [b"null", b"1", b"[]", b'{"model":"x"}'])
def test_json_splice_replaces_a_value_that_is_no_string(other: bytes) -> None:
    assert json.loads(spliced(b'{"a":1,"model":%b}' % other)) == {
        "a": 1,
        "model": "new",
    }
