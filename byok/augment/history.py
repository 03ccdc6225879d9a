"""Convert the history to messages in which every tool call has exactly one result.

Results come directly after the message that they answer, before any words of the same
exchange. A call without a result gets a synthetic one; a result without a call becomes
labelled text. So no provider that enforces OpenAI's pairing rules refuses the messages,
whatever the client sent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count

from byok.augment.blocks import one_line
from byok.augment.exchanges import HistoryItem
from byok.augment.nodes import Result, UserTurn
from byok.augment.recorded_reply import Block, RecordedReply
from byok.chat import (
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.truncate import truncate_middle

NO_RESULT = '{"error":"no result was recorded for this call"}'
NO_OUTPUT = "(no output)"
MAX_ORPHAN_CHARS = 8000
RECORD = (
    "[earlier tool result, call not in this conversation: "
    "a record of the past, no format to imitate]"
)
"""Said here and not in the system message, which stays the same in every turn."""
BEGINNING = "(The beginning of this conversation was left out.)"


class MessageBuilder:
    """Builds the messages of a conversation, the oldest first."""

    def __init__(self) -> None:
        self._messages: list[tuple[Role, list[Part]]] = []
        self._open: list[ToolCall] = []
        self._names: dict[str, str] = {}

    def add_exchange(self, exchange: HistoryItem, number: int) -> None:
        """Add a past exchange; `number` makes unique ids for calls without one."""
        self.add_turn(exchange.turn)
        self._answer(exchange.reply, number)

    def add_turn(self, turn: UserTurn) -> None:
        """Add a user turn: first its results, then its words and images."""
        content = [*self._results(turn.results), *turn.content]
        if content:
            self._add(Role.USER, content)

    def messages(self) -> tuple[Message, ...]:
        """Close open calls and return the messages; the first one is the user's."""
        self._results(())
        messages = tuple(Message(role, tuple(parts)) for role, parts in self._messages)
        if messages and messages[0].role is Role.ASSISTANT:
            return (Message(Role.USER, (TextPart(BEGINNING),)), *messages)
        return messages

    def _add(self, role: Role, parts: Iterable[Part]) -> None:
        """Add a message; merge two of one role, which strict upstreams refuse."""
        if self._messages and self._messages[-1][0] is role and role is not Role.TOOL:
            self._messages[-1][1].extend(parts)
        else:
            self._messages.append((role, list(parts)))

    def _answer(self, reply: RecordedReply, number: int) -> None:
        blocks = _give_ids(reply.blocks, number)
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        if not calls and not reply.text:
            return
        self._names.update((call.id, call.name) for call in calls)
        if self._messages and self._messages[-1][0] is Role.ASSISTANT:
            blocks = self._continue_turn(blocks)
        self._add(Role.ASSISTANT, blocks)
        self._open = calls

    def _continue_turn(self, blocks: list[Block]) -> list[Block]:
        """Return the blocks of a second assistant turn in a row, for one message.

        A blank line separates the texts. The thinking of the first turn, which led to
        no calls, is dropped: it could not be told from that of the second.
        """
        _, before = self._messages[-1]
        before[:] = [part for part in before if not isinstance(part, ThinkingPart)]
        for place, block in enumerate(blocks):
            if isinstance(block, TextPart) and before:
                blocks[place] = TextPart(f"\n\n{block.text}")
                break
        return blocks

    def _results(self, results: Iterable[Result]) -> list[Part]:
        """Answer the open calls; return the orphans for the next user message."""
        calls, self._open = self._open, []
        answered, rest = _pair_results(calls, results)
        for call in calls:
            self._add(Role.TOOL, [_tool_result(call, answered.get(call.id))])
        return [part for result in rest for part in self._orphan(result)]

    def _orphan(self, result: Result) -> list[Part]:
        name = self._names.get(result.call_id, "")
        lines = [
            RECORD,
            f"id: {one_line(result.call_id) or 'unknown'}",
            *([f"tool: {one_line(name)}"] if name else []),
            f"status: {'error' if result.is_error else 'ok'}",
            truncate_middle(result.content or NO_OUTPUT, MAX_ORPHAN_CHARS),
        ]
        return [TextPart("\n".join(lines)), *result.images]


def _give_ids(blocks: Sequence[Block], number: int) -> list[Block]:
    """Give each call without an id one that is unique in its message."""
    taken = {block.id for block in blocks if isinstance(block, ToolCall)}
    free = (i for n in count() if (i := f"call_{number}_{n}") not in taken)
    return [
        replace(block, id=next(free))
        if isinstance(block, ToolCall) and not block.id
        else block
        for block in blocks
    ]


def _pair_results(
    calls: list[ToolCall], results: Iterable[Result]
) -> tuple[dict[str, Result], list[Result]]:
    """Pair results with calls by id; the first result of a call counts.

    A result without an id belongs to the only call that is left, if exactly one of each
    is left.
    """
    wanted = {call.id for call in calls}
    answered: dict[str, Result] = {}
    nameless: list[Result] = []
    rest: list[Result] = []
    for result in results:
        known = answered.get(result.call_id)
        if not result.call_id:
            nameless.append(result)
        elif known is None and result.call_id in wanted:
            answered[result.call_id] = result
        elif known is None or known.content != result.content:
            rest.append(result)
    left = [call.id for call in calls if call.id not in answered]
    if len(left) == len(nameless) == 1:
        answered[left[0]] = nameless.pop()
    return answered, rest + nameless


def _tool_result(call: ToolCall, result: Result | None) -> ToolResult:
    if result is None:
        return ToolResult(call.id, call.name, NO_RESULT)
    return ToolResult(
        call.id, call.name, result.content, result.is_error, result.images
    )


def call_ids(messages: Iterable[Message]) -> set[str]:
    """Return the ids of all tool calls in the conversation."""
    return {p.id for m in messages for p in m.parts if isinstance(p, ToolCall)}
