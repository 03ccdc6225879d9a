"""Read the assistant's turns of the history, with blocks in the recorded order.

A client stores the nodes of an answer in the order in which they came: thinking, text,
tool calls, and perhaps more of each. Several providers refuse a history in which that
order changed, or in which thinking moved away from its call.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from byok.augment.body import integer, mapping, objects, text
from byok.augment.nodes import ResponseNode
from byok.chat import Json, TextPart, ThinkingPart, ToolCall
from byok.wire.encrypted_content import read_encrypted
from byok.wire.json_body import is_object

NOTICE = "[byok] "
_AT_ONCE = re.compile(r"\A(?:\[byok\] [^\n]*\n\n)+")  # above the answer
# Clients quote answers between tags, so a line may begin or end beside one.
_OWN_LINES = re.compile(r"(?:^|(?<=>))[ \t]*\[byok\] (?:(?!</)[^\n])*\n?", re.MULTILINE)
Block: TypeAlias = TextPart | ThinkingPart | ToolCall


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """An assistant's turn as the client stored it."""

    blocks: tuple[Block, ...] = ()

    @property
    def text(self) -> str:
        """The whole text of the turn."""
        return "".join(b.text for b in self.blocks if isinstance(b, TextPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the turn."""
        return tuple(b for b in self.blocks if isinstance(b, ToolCall))


def read_reply(item: Json) -> RecordedReply:
    """Read the reply of a history item.

    The text is `response_text`, or else what the nodes contain; the nodes determine
    where its pieces stand. Text without a node comes before the first call.
    """
    nodes = objects(item, "response_nodes") or objects(item, "structured_output_nodes")
    raw = [text(n, "content") for n in nodes if _is(n, ResponseNode.RAW_RESPONSE)]
    finished = [
        content
        for node in nodes
        if _is(node, ResponseNode.MAIN_TEXT_FINISHED)
        and (content := text(node, "content"))
    ]
    said = text(item, "response_text") or "".join(finished[-1:]) or "".join(raw)
    pieces = iter(_divide(without_notices(said), raw))
    calls = _calls(nodes)
    blocks: list[Block] = []
    for place, node in enumerate(nodes):
        if _is(node, ResponseNode.RAW_RESPONSE):
            blocks += _text_part(next(pieces))
        elif _is(node, ResponseNode.THINKING):
            blocks += _thinking_part(mapping(node, "thinking"))
        elif call := calls.get(place):
            blocks.append(call)
    ends = (n for n, block in enumerate(blocks) if isinstance(block, ToolCall))
    before_calls = next(ends, len(blocks))
    blocks[before_calls:before_calls] = [p for t in pieces for p in _text_part(t)]
    return RecordedReply(tuple(blocks))


def without_notices(said: str) -> str:
    """Remove byok's own lines at both ends, so that they never reach a model."""
    if NOTICE not in said:
        return said
    said = _AT_ONCE.sub("", said, count=1)
    lines = said.split("\n")
    kept = len(lines)
    while kept and (lines[kept - 1].startswith(NOTICE) or not lines[kept - 1].strip()):
        kept -= 1
    if not any(line.startswith(NOTICE) for line in lines[kept:]):
        return said
    return "\n".join(lines[:kept])


def drop_notices(text: str) -> str:
    """Remove byok's own lines from a text that a background job's answer is part of.

    Earlier versions of byok answered such jobs with them, and clients keep the answers.
    """
    return _OWN_LINES.sub("", text) if NOTICE in text else text


def _divide(said: str, raw: Sequence[str]) -> list[str]:
    """Divide a text as its nodes do; a text that differs from theirs stays whole."""
    if not "".join(raw).startswith(said):
        return _join_blanks([said, *("" for _ in raw[1:])])
    ends = list(accumulate(map(len, raw)))
    starts = [0, *ends]
    return _join_blanks(said[a:b] for a, b in zip(starts, ends, strict=False))


def _join_blanks(pieces: Iterable[str]) -> list[str]:
    """Join white space to the piece before it, else to the next; "" takes its place."""
    out: list[str] = []
    last, blank = -1, ""
    for place, piece in enumerate(pieces):
        said = bool(piece.strip())
        out.append(blank + piece if said else "")
        if said:
            last, blank = place, ""
        elif last < 0:
            blank += piece
        else:
            out[last] += piece
    return out


def _text_part(said: str) -> list[Block]:
    return [TextPart(said)] if said else []


def _thinking_part(thinking: Json) -> list[Block]:
    thought = text(thinking, "summary")
    provider_data = read_encrypted(text(thinking, "encrypted_content"))
    return [ThinkingPart(thought, provider_data)] if thought or provider_data else []


def _calls(nodes: Sequence[dict[str, Any]]) -> dict[int, ToolCall]:
    """Read tool calls by index of their node; type 5 wins over 7 with the same id."""
    whole = [n for n in nodes if _is(n, ResponseNode.TOOL_USE)]
    ids = {text(mapping(n, "tool_use"), "tool_use_id") for n in whole}
    calls: dict[int, ToolCall] = {}
    seen: set[str] = set()
    for place, node in enumerate(nodes):
        use = mapping(node, "tool_use")
        call_id = text(use, "tool_use_id")
        begun = _is(node, ResponseNode.TOOL_USE_START) and call_id not in ids
        if call_id in seen or not (begun or _is(node, ResponseNode.TOOL_USE)):
            continue
        if name := text(use, "tool_name"):
            arguments = _arguments(text(use, "input_json"))
            calls[place] = ToolCall(call_id, name, arguments)
            seen |= {call_id} - {""}
    return calls


def _arguments(raw: str) -> str:
    """Return the client's own string if it is a JSON object, else `{}`."""
    return raw if is_object(raw) else "{}"


def _is(node: Json, kind: ResponseNode) -> bool:
    return integer(node, "type", -1) == kind
