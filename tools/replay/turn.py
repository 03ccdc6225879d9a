"""Parse the answer that a client got, and compare two answers."""

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

import orjson

from byok.core.errors import UpstreamError
from byok.core.events import Finish, TextDelta, ThinkingDelta, ToolCallDelta, Usage
from byok.core.wire.json_body import parse_json
from byok.dialects.base import DIALECTS, UpstreamRequest
from byok.dialects.presets import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from byok.protocols.augment.nodes import ResponseNode

_PROTOCOLS = {
    "/v1/chat/completions": OPENAI_CHAT,
    "/v1/responses": OPENAI_RESPONSES,
    "/v1/messages": ANTHROPIC,
}
_OWN_ID = re.compile(r"(call_|toolu_|msg_|resp_|chatcmpl-|fc_|rs_)?[0-9a-f]{16,32}")


@dataclass(slots=True)
class Turn:
    """One answer: text, reasoning, calls as (name, arguments), and the stop reason.

    `lines` are the objects that the client read, without ids that differ each time.
    """

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    stop: str = ""
    usage: str = ""
    error: str = ""
    lines: list[str] = field(default_factory=list)


class TurnDifference(NamedTuple):
    """A part in which the recorded answer and a new one differ."""

    what: str
    recorded: str
    now: str


def read_turn(endpoint: str, text: str) -> Turn:
    """Parse the answer of an endpoint to a client."""
    turn = Turn(lines=_lines(text))
    if endpoint in _PROTOCOLS:
        _read_protocol(turn, _PROTOCOLS[endpoint], text.encode())
    else:
        for line in turn.lines:
            _read_line(turn, _parse(line))
    return turn


def compare_turns(recorded: Turn, now: Turn, *, lines: bool) -> list[TurnDifference]:
    """Return the differences; without any, with `lines` the first differing line."""
    names = ("text", "thinking", "stop", "usage", "error")
    pairs = [
        TurnDifference(name, getattr(recorded, name), getattr(now, name))
        for name in names
    ]
    for number in range(max(len(recorded.calls), len(now.calls))):
        calls = _call(recorded, number), _call(now, number)
        pairs.append(TurnDifference(f"tool call {number + 1}", *calls))
    differences = [pair for pair in pairs if pair.recorded != pair.now]
    if lines and not differences and recorded.lines != now.lines:
        differences.append(_compare_lines(recorded.lines, now.lines))
    return differences


def _compare_lines(recorded: list[str], now: list[str]) -> TurnDifference:
    """Return the first line that differs; a missing line is ""."""
    pairs = enumerate(zip_longest(recorded, now, fillvalue=""), 1)
    number, lines = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
    return TurnDifference(f"line {number}", *lines)


def _call(turn: Turn, number: int) -> str:
    return " ".join(turn.calls[number]) if number < len(turn.calls) else ""


def _lines(text: str) -> list[str]:
    """Return the objects of a stream, or the single object, without heartbeats."""
    ids: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return ids.setdefault(match[0], f"{match[1] or ''}id-{len(ids) + 1}")

    objects = []
    for line in text.replace("data: ", "").split("\n"):
        value = _parse(line)
        if not isinstance(value, dict) or _is_heartbeat(value):
            continue
        value.pop("created", None)
        objects.append(_OWN_ID.sub(name, orjson.dumps(value).decode()))
    return objects


def _parse(line: str) -> Any:
    try:
        return parse_json(line.encode()) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _is_heartbeat(value: dict[str, Any]) -> bool:
    return not any(value.values()) and "nodes" in value


def _read_line(turn: Turn, value: Any) -> None:
    """Read an object of the editors' protocol."""
    if isinstance(text := value.get("text"), str):
        turn.text += text
    nodes = value.get("nodes")
    for node in nodes if isinstance(nodes, list) else ():
        _read_node(turn, node)
    if (stop := value.get("stop_reason")) is not None:
        turn.stop = str(stop)
    if isinstance(error := value.get("error"), dict):
        turn.error = f"{error.get('code', '')}: {error.get('message', '')}"


def _read_node(turn: Turn, node: Any) -> None:
    match node:
        case {"type": ResponseNode.TOOL_USE, "tool_use": dict(call)}:
            name = str(call.get("tool_name", ""))
            turn.calls.append((name, _canonical(str(call.get("input_json", "")))))
        case {"type": ResponseNode.THINKING, "thinking": dict(thinking)}:
            turn.thinking += str(thinking.get("summary", ""))
        case {"type": ResponseNode.TOKEN_USAGE, "token_usage": counts}:
            turn.usage = _canonical(orjson.dumps(counts).decode())
        case _:
            pass  # other nodes are not compared


def _read_protocol(turn: Turn, dialect: str, raw: bytes) -> None:
    """Read an answer in a vendor's protocol, with byok's own decoder of it."""
    stage = DIALECTS[dialect]("").reader(UpstreamRequest("", {}))
    calls: dict[object, list[str]] = {}
    try:
        for event in (*stage.feed(raw), *stage.flush()):
            match event:
                case TextDelta(text=text):
                    turn.text += text
                case ThinkingDelta(text=text):
                    turn.thinking += text
                case ToolCallDelta():
                    key = event.index if event.index is not None else event.id
                    call = calls.setdefault(key, ["", ""])
                    call[0] += event.name
                    call[1] += event.arguments
                case Usage():
                    turn.usage = f"{event.input_tokens} in, {event.output_tokens} out"
                case Finish(reason=reason):
                    turn.stop = reason.value
                case _:
                    pass
    except UpstreamError as error:
        turn.error = str(error)
    turn.calls = [(name, _canonical(arguments)) for name, arguments in calls.values()]


def _canonical(text: str) -> str:
    """Write JSON with sorted names; return another text unchanged."""
    try:
        value = parse_json(text.encode())
    except (ValueError, RecursionError):
        return text
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
