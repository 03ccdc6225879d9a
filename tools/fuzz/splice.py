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
    """Check that the result differs only in the value, also byte for byte."""
    try:
        body = parse_body(raw)
    except ByokError:
        return
    changed = with_string(raw, body, "model", value)
    assert parse_json(changed) == {**body, "model": value}
    if isinstance(body.get("model", ""), str):
        start = _common_prefix(raw, changed)
        shorter = min(len(raw), len(changed))
        end = min(_common_prefix(raw[::-1], changed[::-1]), shorter - start)
        max_length = 2 * len(value.encode()) + len('"model":"",{}')
        assert len(changed) - start - end <= max_length, (
            "more was written than the value"
        )


def _common_prefix(data: bytes, other: bytes) -> int:
    """Return the length of the common prefix."""
    pairs = zip(data, other, strict=False)
    differences = (n for n, (a, b) in enumerate(pairs) if a != b)
    return next(differences, min(len(data), len(other)))


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
