"""Reading the history into messages in which every tool call has exactly one result.

Clients send the results with the request after their calls. A result without a call in
the answer before it becomes labelled text in the user's message. So providers that
enforce OpenAI's pairing rules accept the messages, whatever the client sent.

A client stores the nodes of an answer in the order in which they came: thinking, text,
tool calls, and perhaps more of each. This order is kept, because several providers
refuse a history in which it changed, or in which thinking moved away from its call.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import accumulate, count
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import (
    Json,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    parts_of,
)
from byok.core.conversation_builder import ConversationBuilder
from byok.core.escapes import truncate_middle
from byok.core.wire.encrypted_content import read_encrypted
from byok.core.wire.json_body import is_object
from byok.dialects.safe_names import NO_OUTPUT
from byok.protocols.augment.body import integer, mapping, objects, text
from byok.protocols.augment.nodes import ResponseNode, UserTurn, one_line, read_turn

NOTICE = "[byok] "
_LEADING_NOTICES = re.compile(r"\A(?:\[byok\] [^\n]*\n\n)+")  # above the answer
# Clients quote answers between tags, so a notice may begin or end next to a tag.
_NOTICE_LINES = re.compile(
    r"(?:^|(?<=>))[ \t]*\[byok\] (?:(?!</)[^\n])*\n?", re.MULTILINE
)
Block: TypeAlias = TextPart | ThinkingPart | ToolCall
MAX_ORPHAN_CHARS = 8000
# It stands beside the result, because the system message must not change between turns.
RECORD = (
    "[earlier tool result, call not in this conversation: "
    "a record of the past, no format to imitate]"
)
BEGINNING = "(The beginning of this conversation was left out.)"
MAX_RESULT_CHARS = 8000
MAX_INPUT_CHARS = 2000
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_TEMPLATE = """<earlier_conversation>
{summary}
({beginning_part_dropped_num_exchanges} exchanges dropped)
{middle_part_abridged}
</earlier_conversation>
<recent>
{end_part_full}
</recent>"""


@dataclass(frozen=True)
class RecordedReply:
    """An assistant's turn as the client stored it."""

    blocks: tuple[Block, ...] = ()

    @cached_property
    def text(self) -> str:
        """The whole text of the turn."""
        return "".join(b.text for b in self.blocks if isinstance(b, TextPart))

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the turn."""
        return tuple(b for b in self.blocks if isinstance(b, ToolCall))


def read_reply(item: Json) -> RecordedReply:
    """Read the reply of a history item.

    The text is `response_text`, or else that of the nodes, which tell the positions of
    its pieces. Text without a node comes before the first call.
    """
    nodes = objects(item, "response_nodes") or objects(item, "structured_output_nodes")
    raw = [text(n, "content") for n in nodes if _is(n, ResponseNode.RAW_RESPONSE)]
    finished = [
        content
        for node in nodes
        if _is(node, ResponseNode.MAIN_TEXT_FINISHED)
        and (content := text(node, "content"))
    ]
    whole = text(item, "response_text") or "".join(finished[-1:]) or "".join(raw)
    whole = without_notices(whole)
    divided = [whole, *("" for _ in raw[1:])]  # if it differs from that of the nodes
    if "".join(raw).startswith(whole):
        ends = list(accumulate(map(len, raw)))
        divided = [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    pieces = iter(_join_blanks(divided))
    calls = _calls(nodes)
    blocks: list[Block] = []
    for index, node in enumerate(nodes):
        if _is(node, ResponseNode.RAW_RESPONSE):
            blocks += _text_part(next(pieces))
        elif _is(node, ResponseNode.THINKING):
            thinking = mapping(node, "thinking")
            data = read_encrypted(text(thinking, "encrypted_content"))
            if (thought := text(thinking, "summary")) or data:
                blocks.append(ThinkingPart(thought, data))
        elif call := calls.get(index):
            blocks.append(call)
    call_indices = (n for n, block in enumerate(blocks) if isinstance(block, ToolCall))
    first_call = next(call_indices, len(blocks))
    blocks[first_call:first_call] = [p for t in pieces for p in _text_part(t)]
    return RecordedReply(tuple(blocks))


def without_notices(answer: str) -> str:
    """Remove byok's notices at both ends, so that they never reach a model."""
    if NOTICE not in answer:
        return answer
    answer = _LEADING_NOTICES.sub("", answer, count=1)
    lines = answer.split("\n")
    end = len(lines)
    while end and (lines[end - 1].startswith(NOTICE) or not lines[end - 1].strip()):
        end -= 1
    if not any(line.startswith(NOTICE) for line in lines[end:]):
        return answer
    return "\n".join(lines[:end])


def drop_notices(text: str) -> str:
    """Remove all notices from a text that may contain a background job's answer.

    Earlier versions of byok added notices to such answers, and clients store them.
    """
    return _NOTICE_LINES.sub("", text) if NOTICE in text else text


def _join_blanks(pieces: Iterable[str]) -> list[str]:
    """Join blank pieces to the piece before, else to the next; they become ""."""
    joined: list[str] = []
    last, blank = -1, ""  # the index of the last piece that is not blank
    for index, piece in enumerate(pieces):
        has_words = bool(piece.strip())
        joined.append(blank + piece if has_words else "")
        if has_words:
            last, blank = index, ""
        elif last < 0:
            blank += piece
        else:
            joined[last] += piece
    return joined


def _text_part(words: str) -> list[Block]:
    return [TextPart(words)] if words else []


def _calls(nodes: Sequence[dict[str, Any]]) -> dict[int, ToolCall]:
    """Return the tool calls by the index of their node.

    If two nodes have one id, TOOL_USE (5) counts more than TOOL_USE_START (7).
    """
    whole = [n for n in nodes if _is(n, ResponseNode.TOOL_USE)]
    ids = {text(mapping(n, "tool_use"), "tool_use_id") for n in whole}
    calls: dict[int, ToolCall] = {}
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        use = mapping(node, "tool_use")
        call_id = text(use, "tool_use_id")
        is_start = _is(node, ResponseNode.TOOL_USE_START) and call_id not in ids
        if call_id in seen or not (is_start or _is(node, ResponseNode.TOOL_USE)):
            continue
        if name := text(use, "tool_name"):
            arguments = text(use, "input_json")
            if not is_object(arguments):
                arguments = "{}"
            calls[index] = ToolCall(call_id, name, arguments)
            seen |= {call_id} - {""}
    return calls


def _is(node: Json, kind: ResponseNode) -> bool:
    return integer(node, "type", -1) == kind


class HistoryItem(Struct, frozen=True):
    """One exchange in a client's history: a user turn and the assistant's answer."""

    turn: UserTurn
    reply: RecordedReply


def read_exchange(item: Json) -> HistoryItem:
    """Read one history item."""
    turn = read_turn(item, text(item, "request_message"))
    return HistoryItem(turn, read_reply(item))


class MessageBuilder:
    """A builder of the messages of a conversation, from its exchanges in order."""

    def __init__(self) -> None:
        self._builder = ConversationBuilder(BEGINNING)
        self._open: list[str] = []  # ids of the calls of the newest answer

    def add_exchange(self, exchange: HistoryItem, number: int) -> None:
        """Add a past exchange; `number` makes the ids for calls without one unique."""
        self.add_turn(exchange.turn)
        reply = exchange.reply
        self._open = [call.id for call in reply.calls]
        if not all(self._open):
            reply = RecordedReply(_give_ids(reply.blocks, number))
            self._open = [call.id for call in reply.calls]
        if self._open or reply.text:
            self._builder.add_turn(reply.blocks)

    def add_turn(self, turn: UserTurn) -> None:
        """Add a user turn: its results, then its words and images."""
        parts: Sequence[Part] = turn.content
        if turn.results and (orphans := self._add_results(turn.results)):
            records = [p for result in orphans for p in self._write_orphan(result)]
            parts = [*records, *parts]
        if not turn.asks:
            parts = [
                replace(part, is_aside=True) if isinstance(part, TextPart) else part
                for part in parts
            ]
        self._builder.add_user(parts)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages; the first one is the user's."""
        return tuple(self._builder.messages())

    def _add_results(self, results: Iterable[ToolResult]) -> list[ToolResult]:
        """Add the results of the newest calls, and return the results without a call.

        If exactly one call and one result without an id remain, they belong together.
        """
        unanswered, self._open = self._open, []
        known = frozenset(unanswered)
        orphans: list[ToolResult] = []
        nameless: list[ToolResult] = []
        for result in results:
            if not result.call_id:
                nameless.append(result)
            elif result.call_id not in known or not self._builder.add_result(result):
                orphans.append(result)
            else:
                unanswered = [i for i in unanswered if i != result.call_id]
        if len(unanswered) == len(nameless) == 1:
            self._builder.add_result(replace(nameless.pop(), call_id=unanswered[0]))
        return orphans + nameless

    def _write_orphan(self, result: ToolResult) -> list[Part]:
        name = self._builder.name_of(result.call_id)
        lines = [
            RECORD,
            f"id: {one_line(result.call_id) or 'unknown'}",
            *([f"tool: {one_line(name)}"] if name else []),
            f"status: {'error' if result.is_error else 'ok'}",
            truncate_middle(result.content or NO_OUTPUT, MAX_ORPHAN_CHARS),
        ]
        return [TextPart("\n".join(lines)), *result.images]


def _give_ids(blocks: Sequence[Block], number: int) -> tuple[Block, ...]:
    """Add an id that is unique in the message to each call without one."""
    taken = {block.id for block in blocks if isinstance(block, ToolCall)}
    free = (i for n in count() if (i := f"call_{number}_{n}") not in taken)
    return tuple(
        replace(block, id=next(free))
        if isinstance(block, ToolCall) and not block.id
        else block
        for block in blocks
    )


def call_ids(messages: Iterable[Message]) -> set[str]:
    """Return the ids of all tool calls in the conversation."""
    return {part.id for part in parts_of(messages) if isinstance(part, ToolCall)}


def render_summary(turn: UserTurn) -> UserTurn:
    """Return a turn in which the summary node is replaced by its text.

    Tool results beside the node belong to calls that are only text now, so they are
    rendered as one more exchange of the summary.
    """
    if turn.summary is None:
        return turn
    with_results = HistoryItem(UserTurn(results=turn.results), RecordedReply())
    extra = [with_results] if turn.results else []
    summary = render(turn.summary, extra)
    text: tuple[Part, ...] = (TextPart(summary),) if summary.strip() else ()
    images = [image for result in turn.results for image in result.images]
    index = turn.before_summary
    content = (*turn.content[:index], *text, *images, *turn.content[index:])
    return replace(turn, content=content, results=(), asks=True)


def render(node: Json, extra: list[HistoryItem]) -> str:
    """Fill the client's template, or byok's own, in a single pass.

    Values may contain braces or placeholders, which stay; so do unknown placeholders.
    """
    end = [read_exchange(item) for item in objects(node, "history_end")]
    dropped = integer(node, "history_beginning_dropped_num_exchanges")
    values = {
        "summary": drop_notices(text(node, "summary_text")),
        "summarization_request_id": text(node, "summarization_request_id"),
        "beginning_part_dropped_num_exchanges": str(dropped),
        "middle_part_abridged": drop_notices(
            text(node, "history_middle_abridged_text")
        ),
        "end_part_full": "\n".join(map(_render_exchange, [*end, *extra])),
    }
    template = text(node, "message_template")
    filled = _PLACEHOLDER.sub(
        lambda slot: values.get(slot[1], slot[0]), template or _TEMPLATE
    )
    if template and extra and "{end_part_full}" not in template:
        filled += "\n" + "\n".join(map(_render_exchange, extra))
    return filled


def _render_exchange(exchange: HistoryItem) -> str:
    turn, reply = exchange.turn, exchange.reply
    words = "\n".join(p.text for p in turn.content if isinstance(p, TextPart))
    parts = [
        *(_render_result(result) for result in turn.results),
        f"<user>{words}</user>" if words else "",
        f"<assistant>{reply.text}</assistant>" if reply.text else "",
        *(
            f'<tool_use name="{escape(call.name)}" id="{escape(call.id)}">'
            f"{truncate_middle(call.arguments, MAX_INPUT_CHARS)}</tool_use>"
            for call in reply.calls
        ),
    ]
    return "<exchange>" + "".join(filter(None, parts)) + "</exchange>"


def _render_result(result: ToolResult) -> str:
    error = ' is_error="true"' if result.is_error else ""
    content = truncate_middle(result.content, MAX_RESULT_CHARS)
    return f'<tool_result id="{escape(result.call_id)}"{error}>{content}</tool_result>'
