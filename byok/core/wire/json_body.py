"""Parse, change and write JSON documents, within limits.

orjson parses nearly all of them. A document that it refuses is parsed again by the
standard library, only to accept lone surrogates: strings of JavaScript are UTF-16,
clients cut them inside an emoji, and a refusal would make that conversation unusable
for good.
"""

import json
import re
from collections.abc import Callable
from itertools import chain
from typing import Any

import orjson

from byok.core.errors import BadJson, BadRequest

_HIGH = range(0xD800, 0xDC00)
MAX_DEPTH = 128
MAX_OBJECTS = 500_000
_MAX_OPENERS = 1_000_000
_LARGE_BYTES, _MEMORY_FACTOR = 2**20, 4
_NESTED = frozenset((dict, list))
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_COLON = re.compile(rb"\s*:\s*")


def join_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates by U+FFFD."""
    if _is_whole(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_whole(text: str) -> bool:
    """Tell whether a text has no surrogates, like nearly all texts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class SurrogateBuffer:
    """Buffers a high surrogate at the end of a piece until the low one arrives."""

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, piece: str) -> str:
        """Return the text that is complete now."""
        if not self._pending and (piece.isascii() or _is_whole(piece)):
            return piece
        text = self._pending + piece
        self._pending = ""
        if text and ord(text[-1]) in _HIGH:
            text, self._pending = text[:-1], text[-1]
        return join_surrogates(text)

    def flush(self) -> str:
        """Return the buffered text: a lone high surrogate becomes U+FFFD."""
        pending, self._pending = self._pending, ""
        return pending and join_surrogates(pending)


def parse_json(raw: bytes, *, keep_halves: bool = False) -> Any:
    """Parse any JSON document.

    Lone surrogates become U+FFFD unless `keep_halves` is set: the other half of an
    emoji may come in the next event of a stream.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply for the parser.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _parse_with_stdlib(raw)
        return value if keep_halves else _repair_strings(value)


def is_object(text: str) -> bool:
    """Tell whether a text is a JSON object; its numbers may exceed a float."""
    raw = text.encode("utf-8", "surrogatepass")
    try:
        return isinstance(orjson.loads(raw), dict)
    except orjson.JSONDecodeError:
        pass
    try:
        return isinstance(_parse_with_stdlib(raw, read_number=float), dict)
    except (ValueError, RecursionError):
        return False


def parse_body(raw: bytes) -> dict[str, Any]:
    """Parse a request body; an empty one counts as `{}`.

    Raises:
        BadRequest: 400 not JSON, 413 too many objects, 422 too deep or not an object.
    """
    if not raw.strip():
        return {}
    if _has_too_many_objects(raw):
        raise BadRequest(
            f"The body holds more than {MAX_OBJECTS:,} objects or arrays, or four "
            "times as many fields.",
            code="body_too_large",
            status=413,
        )
    if len(raw) >= _LARGE_BYTES:
        # orjson aborts the process if memory runs out; this raises a MemoryError first.
        bytearray(_MEMORY_FACTOR * len(raw))
    try:
        body = parse_json(raw)
    except RecursionError as error:
        raise _too_deep_error(raw) from error
    except ValueError as error:
        raise BadJson(f"The body is not JSON: {error}.") from error
    if not isinstance(body, dict):
        raise BadRequest(
            "The body must be a JSON object.", code="not_an_object", status=422
        )
    if is_too_deep(body):
        raise _too_deep_error(b"")
    return body


def _has_too_many_objects(raw: bytes) -> bool:
    """Estimate whether orjson would take seconds, during which nothing else runs."""
    if len(raw) < 2 * MAX_OBJECTS:  # an object takes two bytes at least
        return False
    counts = (raw.count(b"{"), raw.count(b"],"), raw.count(b'":') // 4)
    return max(counts) > MAX_OBJECTS


def write_json(value: Any) -> bytes:
    """Serialise any value that parse_json returned.

    orjson writes neither integers beyond 64 bits nor lone surrogates; the standard
    library writes both.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def read_float(digits: str) -> float:
    """Parse a number of JSON.

    Raises:
        ValueError: it is too large.
    """
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


def _parse_with_stdlib(
    raw: bytes, *, read_number: Callable[[str], float] = read_float
) -> Any:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(  # noqa: TID251 - the one place that may, see above
            text, parse_constant=_refuse, parse_float=read_number
        )
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise ValueError(f"{error.msg} at byte {offset}") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _repair_strings(value: Any) -> Any:
    """Replace lone surrogates in all strings; no recursion, as any depth may come."""
    if isinstance(value, str):
        return join_surrogates(value)
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            items = [(join_surrogates(key), item) for key, item in node.items()]
            node.clear()
            node.update(items)
            pairs: Any = node.items()
        elif isinstance(node, list):
            pairs = enumerate(node)
        else:
            continue
        for key, item in list(pairs):
            if isinstance(item, str):
                node[key] = join_surrogates(item)
            else:
                stack.append(item)
    return value


def is_too_deep(value: Any) -> bool:
    """Tell whether objects and arrays are nested deeper than byok accepts."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [node.values() if type(node) is dict else node for node in level]
        level = [item for item in chain.from_iterable(inner) if type(item) in _NESTED]
        if not level:
            return False
    return True


def _too_deep_error(raw: bytes) -> BadRequest:
    if raw.count(b"[") + raw.count(b"{") > _MAX_OPENERS:
        return BadJson("The body is not JSON: its brackets are never closed.")
    return BadRequest(
        f"The body is nested deeper than {MAX_DEPTH} levels.",
        code="json_too_complex",
        status=422,
    )


def with_string(raw: bytes, body: dict[str, Any], key: str, value: str) -> bytes:
    """Return `raw` with the string `value` at a key of its top level.

    `body` is the parsed form of `raw`. All other bytes stay as they are. A missing key
    is added in front; if the present value is not a string, the whole object is
    serialised again.
    """
    written = write_json(value)
    if key not in body:
        return _insert_member(raw, write_json(key) + b":" + written)
    if isinstance(body[key], str) and (span := _find_string(raw, key)):
        start, end = span
        return raw[:start] + written + raw[end:]
    return write_json({**body, key: value})


def _insert_member(raw: bytes, member: bytes) -> bytes:
    start = raw.find(b"{") + 1
    if not start:  # an empty body counts as {}
        return b"{" + member + b"}"
    comma = b"" if raw[start:].lstrip().startswith(b"}") else b","
    return raw[:start] + member + comma + raw[start:]


def _find_string(raw: bytes, key: str) -> tuple[int, int] | None:
    """Return the span of the string at a key; of duplicate keys the last one counts."""
    span_: tuple[int, int] | None = None
    is_next = False
    depth = 0
    for token in _TOKEN.finditer(raw):
        first = raw[token.start()]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
        elif depth == 1:
            if is_next:
                span_, is_next = token.span(), False
            elif colon := _COLON.match(raw, token.end()):
                is_string = raw[colon.end() : colon.end() + 1] == b'"'
                is_next = is_string and parse_json(token.group()) == key
    return span_
