"""Write NDJSON, as the clients read it: one object per line, LF after each."""

from typing import TYPE_CHECKING

import orjson

from byok.wire.json_body import write_json
from byok.wire.surrogates import join_surrogates

if TYPE_CHECKING:
    from byok.chat import Json

# Clients in Python split lines with str.splitlines, which also cuts at U+2028,
# U+2029 and U+0085. Inside JSON these stand only in strings, so an escape is equal.
_CUTTERS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


def encode_line(value: "Json") -> bytes:
    """Serialise one object as one line.

    A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD.
    """
    try:
        line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        line = write_json(_clean(value)) + b"\n"
    if line.isascii():
        return line
    for raw, escaped in _CUTTERS:
        if raw[0] in line and raw in line:  # looking for one byte is far cheaper
            line = line.replace(raw, escaped)
    return line


def _clean(value: object) -> object:
    match value:
        case str():
            return join_surrogates(value)
        case dict():
            return {join_surrogates(str(k)): _clean(v) for k, v in value.items()}
        case list() | tuple():
            return [_clean(item) for item in value]
        case _:
            return value
