"""Read the history, and make messages of it in which every call has one result.

Results of clients come with the request after their call; a result whose call is not in
the answer before becomes labelled text in the words of the user. So no provider that
enforces OpenAI's pairing rules refuses the messages, whatever the client sent.
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
from byok.protocols.augment.body import integer, mapping, objects, text
from byok.protocols.augment.nodes import ResponseNode, UserTurn, one_line, read_turn

# Read the assistant's turns of the history, with blocks in the recorded order.
#
# A client stores the nodes of an answer in the order in which they came: thinking,
# text, tool calls, and perhaps more of each. Several providers refuse a history in
# which that order changed, or in which thinking moved away from its call.


NOTICE = "[byok] "
_AT_ONCE = re.compile(r"\A(?:\[byok\] [^\n]*\n\n)+")  # above the answer
# Clients quote answers between tags, so a line may begin or end beside one.
_OWN_LINES = re.compile(r"(?:^|(?<=>))[ \t]*\[byok\] (?:(?!</)[^\n])*\n?", re.MULTILINE)
Block: TypeAlias = TextPart | ThinkingPart | ToolCall


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
            arguments = text(use, "input_json")
            if not is_object(arguments):
                arguments = "{}"
            calls[place] = ToolCall(call_id, name, arguments)
            seen |= {call_id} - {""}
    return calls


def _is(node: Json, kind: ResponseNode) -> bool:
    return integer(node, "type", -1) == kind


# Read the history: each item is a user turn and the assistant's reply to it.


class HistoryItem(Struct, frozen=True):
    """One exchange in a client's history: a user turn and the assistant's answer."""

    turn: UserTurn
    reply: RecordedReply


def read_exchange(item: Json) -> HistoryItem:
    """Read one history item."""
    turn = read_turn(item, text(item, "request_message"))
    return HistoryItem(turn, read_reply(item))


NO_OUTPUT = "(no output)"
MAX_ORPHAN_CHARS = 8000
RECORD = (
    "[earlier tool result, call not in this conversation: "
    "a record of the past, no format to imitate]"
)
"""Said here and not in the system message, which stays the same in every turn."""
BEGINNING = "(The beginning of this conversation was left out.)"


class MessageBuilder:
    """Builds the messages of a conversation from its exchanges, the oldest first."""

    def __init__(self) -> None:
        self._builder = ConversationBuilder(BEGINNING)
        self._open: list[str] = []  # ids of the calls of the newest answer

    def add_exchange(self, exchange: HistoryItem, number: int) -> None:
        """Add a past exchange; `number` makes unique ids for calls without one."""
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
            shown = [part for result in orphans for part in self._show_orphan(result)]
            parts = [*shown, *parts]
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
        """Give the newest calls their results, and return those that belong to none.

        A result without an id belongs to the only call that is left, if exactly one of
        each is left.
        """
        left, self._open = self._open, []
        known = frozenset(left)
        orphans: list[ToolResult] = []
        nameless: list[ToolResult] = []
        for result in results:
            if not result.call_id:
                nameless.append(result)
            elif result.call_id not in known or not self._builder.add_result(result):
                orphans.append(result)
            else:
                left = [call_id for call_id in left if call_id != result.call_id]
        if len(left) == len(nameless) == 1:
            self._builder.add_result(replace(nameless.pop(), call_id=left[0]))
        return orphans + nameless

    def _show_orphan(self, result: ToolResult) -> list[Part]:
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
    """Give each call without an id one that is unique in its message."""
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


# The history summary node: old exchanges that the client summarised.


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


def render_summary(turn: UserTurn) -> UserTurn:
    """Return a turn with the summary's text in the place of its node.

    Tool results beside the node answer calls that are only text now; they are rendered
    as one more exchange instead of as tool messages.
    """
    if turn.summary is None:
        return turn
    beside = HistoryItem(UserTurn(results=turn.results), RecordedReply())
    extra = [beside] if turn.results else []
    shown = render(turn.summary, extra)
    text: tuple[Part, ...] = (TextPart(shown),) if shown.strip() else ()
    images = [image for result in turn.results for image in result.images]
    before = turn.before_summary
    content = (*turn.content[:before], *text, *images, *turn.content[before:])
    return replace(turn, content=content, results=(), asks=True)


def render(node: Json, extra: list[HistoryItem]) -> str:
    """Fill the client's template, or byok's own, in a single pass.

    Values may contain braces or names of placeholders; unknown placeholders stay.
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
        "end_part_full": "\n".join(map(_exchange, [*end, *extra])),
    }
    template = text(node, "message_template")
    filled = _PLACEHOLDER.sub(
        lambda found: values.get(found[1], found[0]), template or _TEMPLATE
    )
    if template and extra and "{end_part_full}" not in template:
        filled += "\n" + "\n".join(map(_exchange, extra))
    return filled


def _exchange(exchange: HistoryItem) -> str:
    turn, reply = exchange.turn, exchange.reply
    said = "\n".join(p.text for p in turn.content if isinstance(p, TextPart))
    parts = [
        *(_result(result) for result in turn.results),
        f"<user>{said}</user>" if said else "",
        f"<assistant>{reply.text}</assistant>" if reply.text else "",
        *(
            f'<tool_use name="{escape(call.name)}" id="{escape(call.id)}">'
            f"{truncate_middle(call.arguments, MAX_INPUT_CHARS)}</tool_use>"
            for call in reply.calls
        ),
    ]
    return "<exchange>" + "".join(filter(None, parts)) + "</exchange>"


def _result(result: ToolResult) -> str:
    error = ' is_error="true"' if result.is_error else ""
    content = truncate_middle(result.content, MAX_RESULT_CHARS)
    return f'<tool_result id="{escape(result.call_id)}"{error}>{content}</tool_result>'
