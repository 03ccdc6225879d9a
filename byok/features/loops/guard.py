"""Warns models of loops in a conversation, and ends turns that stay in a loop."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    ToolCall,
    ToolResult,
    calls_of,
    is_said_by_user,
)
from byok.features.base import PASS, Asking, Feature, Site, Supplies, Verdict
from byok.features.loops.watch import AnsweredCall, Loop, LoopWatch
from byok.features.settings import LoopSettings


class LoopGuard(Feature):
    """Tells a model that it is in a loop, and ends the turn if the loop continues."""

    def __init__(self, site: Site) -> None:
        """Store nothing: clients send the whole conversation."""
        super().__init__(site)
        self._limits = LoopSettings(on=False)

    def configure(self, supplies: Supplies, /) -> None:
        """Use these limits from now on."""
        self._limits = supplies.settings.section(LoopSettings)

    async def admit(self, asking: Asking, /) -> Verdict:
        """Add notes for the model; end a turn whose model was warned before."""
        chat = asking.chat
        if chat is None or not self._limits.on:
            return PASS
        if not any(message.role is Role.TOOL for message in chat.messages):
            return PASS
        noted, loop = await asking.run(partial(note_loops, chat, self._limits))
        if loop is not None:
            asking.record.loop = loop.fact
            if loop.ends and not chat.silent:
                return Verdict(answer=loop.for_user)
        return PASS if noted is chat else Verdict(chat=noted)


def note_loops(
    chat: ChatRequest, limits: LoopSettings
) -> tuple[ChatRequest, Loop | None]:
    """Return the conversation with notes for the model, and the loop it is in now.

    A note follows the result that showed the loop, and stays there in later requests.
    Once the user has sent another message, there is no loop, and no note is needed.
    """
    watch, messages = LoopWatch(limits), [*chat.messages]
    loop: Loop | None = None
    has_notes = False
    end = 0
    while end < len(messages):
        start, end = end, end + 1
        if is_said_by_user(messages[start]):
            watch.begin_turn()
            loop = None
        elif messages[start].role is Role.ASSISTANT:
            loop = None
        elif messages[start].role is Role.TOOL:
            while end < len(messages) and messages[end].role is Role.TOOL:
                end += 1
            if end < len(messages) and is_said_by_user(messages[end]):
                continue
            calls = calls_of(messages[start - 1]) if start else []
            results = [_result_of(message) for message in messages[start:end]]
            loop = watch.add_step(_pair_results(calls, results))
            if loop is not None:
                has_notes |= _add_note(messages, start, end, loop.for_model)
    return (replace(chat, messages=tuple(messages)) if has_notes else chat), loop


def _result_of(message: Message) -> ToolResult:
    [result] = [part for part in message.parts if isinstance(part, ToolResult)]
    return result


def _pair_results(
    calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> list[AnsweredCall]:
    """Pair calls with their results; a missing result is a failure without text."""
    by_id = {result.call_id: result for result in results if not result.is_missing}
    missing = ToolResult("", "", "", is_error=True)
    return [
        AnsweredCall(call.name, call.arguments, result.content, result.is_error)
        for call in calls
        for result in (by_id.get(call.id, missing),)
    ]


def _add_note(messages: list[Message], start: int, end: int, note: str) -> bool:
    """Add a note to the last result from `start` to `end`; tell if there is one."""
    for index in range(end - 1, start - 1, -1):
        result = _result_of(messages[index])
        if not result.is_missing:
            with_note = replace(result, content=result.content + note)
            messages[index] = replace(messages[index], parts=(with_note,))
            return True
    return False
