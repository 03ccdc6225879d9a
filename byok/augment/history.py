"""Exchanges become messages in which every tool call has exactly one result.

Results come directly after the message they answer and before any words of the same
exchange; a call without a result gets one that says so; a result without a call becomes
labelled text. No provider that enforces OpenAI's pairing refuses what comes out,
whatever the client sent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count

from byok.augment.exchanges import HistoryItem, RecordedReply
from byok.augment.nodes import Result, UserTurn
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
_ERROR_WORDS = ("error", "fail", "exception", "traceback", "fatal")
BEGINNING = "(The beginning of this conversation was left out.)"


class MessageBuilder:
    """Builds the messages of one conversation, oldest first."""

    def __init__(self) -> None:
        self._messages: list[tuple[Role, list[Part]]] = []
        self._open: list[ToolCall] = []
        self._names: dict[str, str] = {}
        self.has_orphans = False

    def add_exchange(self, exchange: HistoryItem, number: int) -> None:
        """Add a past exchange; `number` makes ids for calls that have none."""
        self.add_turn(exchange.turn)
        self._answer(exchange.reply, number)

    def add_turn(self, turn: UserTurn) -> None:
        """Add what the user sent: results first, then words and pictures."""
        pictures, orphans = self._results(turn.results)
        content = [*pictures, *orphans, *turn.content]
        if content:
            self._add(Role.USER, content)

    def messages(self) -> tuple[Message, ...]:
        """Close open calls and give the messages; the first is the user's."""
        self._results(())
        messages = tuple(Message(role, tuple(parts)) for role, parts in self._messages)
        if messages and messages[0].role is Role.ASSISTANT:
            return (Message(Role.USER, (TextPart(BEGINNING),)), *messages)
        return messages

    def _add(self, role: Role, parts: Iterable[Part]) -> None:
        """Add a message; strict upstreams refuse two of one role in a row."""
        if self._messages and self._messages[-1][0] is role and role is not Role.TOOL:
            self._messages[-1][1].extend(parts)
        else:
            self._messages.append((role, list(parts)))

    def _answer(self, reply: RecordedReply, number: int) -> None:
        calls = _give_ids(reply.calls, number)
        self._names.update((call.id, call.name) for call in calls)
        text = (TextPart(reply.text),) if reply.text.strip() else ()
        if not text and not calls:
            return
        # Some upstreams want their reasoning back beside the calls it led to.
        thought = (ThinkingPart(reply.thinking),) if calls and reply.thinking else ()
        self._add(Role.ASSISTANT, (*thought, *text, *calls))
        self._open = calls

    def _results(self, results: Iterable[Result]) -> tuple[list[Part], list[Part]]:
        """Answer the open calls; return pictures and orphans for the user message."""
        calls, self._open = self._open, []
        answered, rest = _pair_results(calls, results)
        pictures: list[Part] = []
        for call in calls:
            result = answered.get(call.id)
            content = _content(result) if result else NO_RESULT
            tool = ToolResult(call.id, call.name, content)
            self._add(Role.TOOL, (tool,))
            if result:
                pictures += _pictures(call, result)
        orphans = [part for result in rest for part in self._orphan(result)]
        self.has_orphans = self.has_orphans or bool(orphans)
        return pictures, orphans

    def _orphan(self, result: Result) -> list[Part]:
        name = self._names.get(result.call_id, "")
        lines = [
            "[earlier tool result, call not in this conversation]",
            f"id: {result.call_id or 'unknown'}",
            *([f"tool: {name}"] if name else []),
            f"status: {'error' if result.is_error else 'ok'}",
            truncate_middle(result.content or NO_OUTPUT, MAX_ORPHAN_CHARS),
        ]
        return [TextPart("\n".join(lines)), *result.images]


def _give_ids(calls: Sequence[ToolCall], number: int) -> list[ToolCall]:
    """Give each call without an id one that no other call of the message has."""
    taken = {call.id for call in calls}
    free = (i for n in count() if (i := f"call_{number}_{n}") not in taken)
    return [c if c.id else replace(c, id=next(free)) for c in calls]


def _pair_results(
    calls: list[ToolCall], results: Iterable[Result]
) -> tuple[dict[str, Result], list[Result]]:
    """Pair results with calls by id; the first result of a call counts.

    A result without an id belongs to the one call that is left, if one of each is.
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


def _content(result: Result) -> str:
    """Write a result as one non-empty string that tells an error."""
    content = result.content if result.content.strip() else NO_OUTPUT
    if result.is_error and not content.lstrip().lower().startswith(_ERROR_WORDS):
        return f"ERROR: {content}"
    return content


def _pictures(call: ToolCall, result: Result) -> list[Part]:
    parts: list[Part] = []
    for number, image in enumerate(result.images, 1):
        parts += [_caption(number, call), image]
    return parts


def _caption(number: int, call: ToolCall) -> TextPart:
    return TextPart(f"Image {number}, output of {call.name} ({call.id}):")


def call_ids(messages: Iterable[Message]) -> set[str]:
    """Return the ids of all tool calls in the conversation."""
    return {p.id for m in messages for p in m.parts if isinstance(p, ToolCall)}
