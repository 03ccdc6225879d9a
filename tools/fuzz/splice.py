"""One string of a JSON body changed, and no other byte."""

import json

from byok.core.errors import ByokError
from byok.core.wire.json_body import parse_body, parse_json, with_string
from tests.fakes.clock import check_linear
from tools.fuzz.target import Draw, Target

_VALUES = ("m", "", 'a"b\\', "é\u2028", "\n")


def check(data: bytes) -> None:
    """Check one body and one new value."""
    draw = Draw(data)
    value = draw.of(_VALUES)
    check_body(draw.rest(), value)


def check_body(raw: bytes, value: str) -> None:
    """Check that the result means the same but for the value, and keeps the bytes."""
    try:
        body = parse_body(raw)
    except ByokError:
        return
    changed = with_string(raw, body, "model", value)
    assert parse_json(changed) == {**body, "model": value}
    if isinstance(body.get("model", ""), str):
        start = _same(raw, changed)
        end = min(_same(raw[::-1], changed[::-1]), min(len(raw), len(changed)) - start)
        most = 2 * len(value.encode()) + len('"model":"",{}')
        assert len(changed) - start - end <= most, "more was written than the value"


def _same(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    ends = (n for n, (a, b) in enumerate(pairs) if a != b)
    return next(ends, min(len(one), len(other)))


def check_time(data: bytes) -> None:
    """Check that twice the body takes twice the time."""
    piece = data[:100].decode("latin-1") or "a"

    def splice(size: int) -> None:
        body = {"a": piece * (size // len(piece)), "model": "x"}
        with_string(json.dumps(body).encode(), body, "model", "y")

    check_linear(splice, 200_000)


TARGET = Target(
    check,
    seeds=[
        b'\x00{"model": "a", "messages": [{"role": "user", "content": "model"}]}',
        b'\x01{"a": {"model": "x"}, "mod\\u0065l" : "b\\"c", "model": "d"}',
        b'\x02{"messages": []}',
        b"\x03 ",
        b'\x01{"model": null, "x": "\\ud83d"}',
        b"\x04\n{\t}\r\n",
    ],
    words=[
        *(
            b'"model"',
            b'"model":"',
            b"\\u0065",
            b'\\"',
            b"\\\\",
            b"{",
            b"}",
            b"[",
            b"]",
        ),
        *(b'"mod\\u0065l"', b": ", b",", b'""', b"null", b"\xff", b"\\ud83d", b"\n"),
    ],
    slow=check_time,
)
