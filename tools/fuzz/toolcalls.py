"""Fragments of tool calls to whole calls, repaired without inventing anything."""

import contextlib
import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from byok.core.chat import RepairMode, ToolCall, ToolDefinition
from byok.core.events import Finish, FinishReason, Notice, ToolCallDelta
from byok.upstream.toolcalls.assemble import MAX_CALLS, ToolCallAssembler
from byok.upstream.toolcalls.repair import Unrepairable, repair_arguments
from tests.fakes.clock import check_linear
from tools.fuzz.target import Draw, Target


def strict(text: str) -> Any:
    """Parse JSON by RFC 8259; return None if it is invalid, or null."""
    try:
        text.encode()
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def lossless(before: Any, after: Any) -> bool:
    """Tell whether `after` equals `before`, or is its only possible reading."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(
            lossless(before[key], after[key]) for key in before
        )
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(lossless, before, after))
    if type(before) is type(after):
        return bool(before == after)
    if isinstance(before, str) and isinstance(after, bool):
        return before.strip().lower() == str(after).lower()
    if isinstance(before, str):
        return lossless(strict(before), after)
    if isinstance(before, int) and isinstance(after, str):
        return after == str(before)
    return isinstance(before, float) and isinstance(after, int) and before == after


_MAX_DEPTH = 60  # below what the lenient reader reads
_SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "boolean", "default": "true"},
            "c": {"type": "array", "items": {"type": "number"}},
            "d": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "e": {"type": "integer", "enum": [1, 2]},
        },
        "required": ["a", "b", "z"],
    },
    {"properties": {"a": {"type": "array"}, "": {"type": "object"}}, "required": "a"},
    {"type": "array", "items": 5, "properties": {"a": None}, "required": [1, "a"]},
    {},
)
_WORD = re.compile(r"[A-Za-z0-9]+\Z")
_LONE = re.compile(r"\\u[dD][89a-fA-F]")  # half a character, which nothing can carry


def check(data: bytes) -> None:
    """Check one text of arguments, or one turn of fragments."""
    draw = Draw(data)
    if draw.one_in(3):
        _check_turn(draw)
        return
    schema = draw.of((None, *_SCHEMAS))
    mode = draw.of((RepairMode.LOSSLESS, RepairMode.FILL, RepairMode.OFF))
    check_repair(draw.rest().decode("utf-8", "replace"), schema, mode)


def check_repair(raw: str, schema: dict[str, Any] | None, mode: RepairMode) -> None:
    """Check everything that a repair promises."""
    before = strict(raw)
    try:
        fixed, rules = repair_arguments(raw, schema, mode=mode)
    except Unrepairable:
        assert before is None or not _readable(raw, before), "refused though it parses"
        return
    after = strict(fixed)
    assert isinstance(after, dict), "no JSON object"
    assert bool(rules) == (fixed != raw) or (not raw and mode is RepairMode.OFF)
    assert repair_arguments(fixed, schema, mode=mode) == (fixed, []), "not idempotent"
    if schema is None or mode is RepairMode.OFF:
        assert before is None or not isinstance(before, dict) or fixed == raw
        if "\\" not in raw:
            for leaf in _leaves(after):
                assert leaf in raw, f"invented: {leaf}"
    elif isinstance(before, dict) and not _LONE.search(raw):
        _check_changes(before, after, schema, mode)


def _check_changes(
    before: dict[str, Any], after: dict[str, Any], schema: dict[str, Any], mode: Any
) -> None:
    assert before.keys() <= after.keys(), "something is lost"
    for key, value in before.items():
        assert lossless(value, after[key]), f"{key!r} changed"
    for key in after.keys() - before.keys():
        declared = schema["properties"][key]
        assert key in schema["required"]
        if "default" in declared:
            assert lossless(declared["default"], after[key])
        else:
            assert mode is RepairMode.FILL
            assert not after[key]


def _readable(raw: str, value: Any) -> bool:
    """Tell whether a value is an object that must not be refused."""
    return isinstance(value, dict) and raw.count("{") + raw.count("[") < _MAX_DEPTH


def _leaves(value: Any) -> Iterator[str]:
    """Yield the plain words and the whole numbers in a value."""
    match value:
        case dict():
            for key, item in value.items():
                yield from _leaves(key)
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case str():
            if _WORD.match(value):
                yield value
        case int() if value and not isinstance(value, bool):
            yield str(value)
        case _:
            pass


_IDS = ("", "x", "y", "call_1")
_NAMES = ("", "f", "g", "view", "remember", "n" * 70)
_PIECES = (
    "",
    "{}",
    '{"a":1}',
    '{"a"',
    ":1}",
    "{",
    "}",
    '"',
    "null",
    "\ud83d",
    "\ude00",
)


def _check_turn(draw: Draw) -> None:
    numbers = count(1)
    stage = ToolCallAssembler(
        [ToolDefinition(n, "", s) for n, s in zip(_NAMES[1:], _SCHEMAS, strict=True)],
        new_id=lambda: f"new{next(numbers)}",
        user_text="Remember this.",
        taken=draw.of(((), ("x",), ("x", "new1"))),
    )
    end = draw.of((*FinishReason, None))
    started = 0
    while not draw.empty:
        piece = draw.of((*_PIECES, None))
        if piece is None:
            piece = draw.raw(40).decode("utf-8", "surrogateescape")
        index = draw.of((None, 0, 1, 2, 63, 10**9, -1))
        delta = ToolCallDelta(index, draw.of(_IDS), draw.of(_NAMES), piece)
        assert list(stage.feed(delta)) == []
        started += bool(delta.name or piece.strip())
    output = [] if end is None else list(stage.feed(Finish(end)))
    remaining = list(stage.flush())
    calls = [event for event in output if isinstance(event, ToolCall)]
    assert all(isinstance(event, Notice) for event in remaining)
    assert not calls or end not in (FinishReason.LENGTH, None)
    assert len(calls) <= MAX_CALLS
    assert bool(output or remaining) == bool(started or end)
    assert all(isinstance(strict(call.arguments), dict) for call in calls)
    assert all(call.name for call in calls)
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)


def check_time(data: bytes) -> None:
    """Check that twice the text, and twice the fragments, take twice the time."""
    piece = data[:200].decode("utf-8", "replace") or '{"a":'

    def repair(size: int) -> None:
        with contextlib.suppress(Unrepairable):
            repair_arguments(piece * (size // len(piece)), _SCHEMAS[1])

    def assemble(size: int) -> None:
        numbers = count(1)
        stage = ToolCallAssembler([], new_id=lambda: f"new{next(numbers)}")
        draw = Draw(data)
        for _ in range(size):
            if draw.empty:
                draw = Draw(data)
            index = draw.of((0, 0, 0, 1, None))
            delta = ToolCallDelta(
                index, draw.of(("", "x")), draw.of(("", "f")), piece[:9]
            )
            stage.feed(delta)
        stage.feed(Finish(FinishReason.STOP))

    check_linear(repair, 100_000)
    check_linear(assemble, 4000)


_TEXTS = (
    '{"a": "5", "b": "True", "c": "[1]", "d": "{}", "e": 1.0}',
    "{'a': None, 'b': True, \"c\": [1, 2,],}",
    '```json\n{"a": 1}\n```',
    '"{\\"a\\": \\"\\\\u00e9\\"}"',
    'I call it: {"a": [1, {"b": 2]} now',
    '{"a": 12345678901234567890123, "b": 1e3, "c": "x\ny"}',
    '{"a": "\\ud83d\\ude00 \\x41 \\\'"}',
    "null",
    '{}{"a": 1}{"a": 1}}]',
    '{"a": 1e400}',
)
TARGET = Target(
    check,
    seeds=[
        *(bytes([0, s, 0]) + t.encode() for s in range(3) for t in _TEXTS),
        *(bytes([2, e, *range(1, 40)]) for e in range(5)),
    ],
    words=[
        *(b'"a"', b"'a'", b'{"a":', b"[", b"]", b"}", b"true", b"True", b"None"),
        *(b"null", b"```", b"```json\n", b"\\u", b"\\x41", b"\\ud83d", b",}", b",]"),
        *(b"1e999", b"-0", b"1234567890123456789012", b'\\"', b'"default"', b"'"),
        *(b"\xc2\xa0", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x00", b"1.0", b"NaN"),
    ],
    slow=check_time,
)
