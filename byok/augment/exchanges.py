"""History items as values: what was asked, what was answered."""

from dataclasses import dataclass
from typing import Any

from byok.augment.body import integer, mapping, objects, text
from byok.augment.nodes import ResponseNode, UserTurn, read_turn
from byok.chat import Json, ToolCall
from byok.wire.json_body import is_object

NOTICE = "[byok] "


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """An assistant's turn as the client recorded it."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One user turn plus the assistant's answer to it."""

    turn: UserTurn
    reply: RecordedReply


def read_exchanges(body: Json) -> list[HistoryItem]:
    """Read `chat_history`, oldest first."""
    return [read_exchange(item) for item in objects(body, "chat_history")]


def read_exchange(item: Json) -> HistoryItem:
    """Read one history item."""
    turn = read_turn(item, text(item, "request_message"))
    return HistoryItem(turn, read_reply(item))


def read_reply(item: Json) -> RecordedReply:
    """Read the answer: `response_text`, or what its nodes hold."""
    nodes = objects(item, "response_nodes") or objects(item, "structured_output_nodes")
    said = text(item, "response_text")
    if not nodes:
        return RecordedReply(without_notices(said))
    if not said:
        said = next(
            (
                content
                for node in reversed(nodes)
                if _is(node, ResponseNode.MAIN_TEXT_FINISHED)
                and (content := text(node, "content"))
            ),
            "",
        ) or "".join(
            text(node, "content")
            for node in nodes
            if _is(node, ResponseNode.RAW_RESPONSE)
        )
    thoughts = (
        text(mapping(node, "thinking"), "summary")
        for node in nodes
        if _is(node, ResponseNode.THINKING)
    )
    return RecordedReply(without_notices(said), _calls(nodes), "".join(thoughts))


def without_notices(said: str) -> str:
    """Drop byok's own lines at the end, so that they never reach a model."""
    if NOTICE not in said:
        return said
    lines = said.split("\n")
    kept = len(lines)
    while kept and (lines[kept - 1].startswith(NOTICE) or not lines[kept - 1].strip()):
        kept -= 1
    if not any(line.startswith(NOTICE) for line in lines[kept:]):
        return said
    return "\n".join(lines[:kept])


def _calls(nodes: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
    """Read tool calls in order; type 5 wins over type 7 of the same id."""
    whole = [n for n in nodes if _is(n, ResponseNode.TOOL_USE)]
    ids = {text(mapping(n, "tool_use"), "tool_use_id") for n in whole}
    calls: dict[Any, ToolCall] = {}
    for position, node in enumerate(nodes):
        use = mapping(node, "tool_use")
        call_id = text(use, "tool_use_id")
        begun = _is(node, ResponseNode.TOOL_USE_START) and call_id not in ids
        if (begun or _is(node, ResponseNode.TOOL_USE)) and text(use, "tool_name"):
            arguments = _arguments(text(use, "input_json"))
            call = ToolCall(call_id, text(use, "tool_name"), arguments)
            calls.setdefault(call_id or position, call)
    return tuple(calls.values())


def _arguments(raw: str) -> str:
    """Keep the client's own string where it is an object, else `{}`."""
    return raw if is_object(raw) else "{}"


def _is(node: Json, kind: ResponseNode) -> bool:
    return integer(node, "type", -1) == kind
