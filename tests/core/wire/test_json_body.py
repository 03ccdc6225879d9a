"""Request bodies: what is read, what is refused, and with which status."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings

from byok.core.errors import BadRequest
from byok.core.wire.json_body import (
    MAX_DEPTH,
    MAX_OBJECTS,
    parse_body,
    parse_json,
    write_json,
)
from tests.fakes.program import ROOT
from tests.fakes.values import OBJECTS


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
def test_a_body_is_read(raw: bytes, body: dict[str, Any]) -> None:
    assert parse_body(raw) == body


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        pytest.param(b"{", 400, "bad_json", id="only an opening brace"),
        pytest.param(b"[]", 422, "not_an_object", id="an array"),
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
