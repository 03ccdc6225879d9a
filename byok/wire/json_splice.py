"""Change one string in a JSON object and leave every other byte as it is."""

import re
from typing import Any

from byok.wire.json_body import parse_json, write_json

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_COLON = re.compile(rb"\s*:\s*")


def with_string(raw: bytes, body: dict[str, Any], key: str, value: str) -> bytes:
    """Return `raw` with `value` at a key of its top level.

    `body` is the parsed form of `raw`. A missing key is added in front; if the value
    there is not a string, the whole object is serialised again.
    """
    written = write_json(value)
    if key not in body:
        return _insert(raw, write_json(key) + b":" + written)
    if isinstance(body[key], str) and (span := _span(raw, key)):
        start, end = span
        return raw[:start] + written + raw[end:]
    return write_json({**body, key: value})


def _insert(raw: bytes, member: bytes) -> bytes:
    start = raw.find(b"{") + 1
    if not start:  # an empty body counts as {}
        return b"{" + member + b"}"
    more = b"" if raw[start:].lstrip().startswith(b"}") else b","
    return raw[:start] + member + more + raw[start:]


def _span(raw: bytes, key: str) -> tuple[int, int] | None:
    """Find the string at a key; of duplicate keys the last one counts."""
    found: tuple[int, int] | None = None
    wanted = False
    depth = 0
    for token in _TOKEN.finditer(raw):
        first = raw[token.start()]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
        elif depth == 1:
            if wanted:
                found, wanted = token.span(), False
            elif colon := _COLON.match(raw, token.end()):
                is_string = raw[colon.end() : colon.end() + 1] == b'"'
                wanted = is_string and parse_json(token.group()) == key
    return found
