"""The cases of the probe about tools, and about reasoning that comes with calls."""

from byok.core.chat import Part, ThinkingPart, ToolCall, ToolUse
from byok.core.errors import RefusalKind
from byok.dialects.model_facts import Replay
from byok.upstream.probe import questions
from byok.upstream.probe.asking import (
    Finding,
    ProbeAnswer,
    Prober,
    ProbeState,
    describe,
    failure,
)
from byok.upstream.probe.report import ProbeOutcome

YES, NO, SKIPPED = ProbeOutcome.YES, ProbeOutcome.NO, ProbeOutcome.SKIPPED


async def try_tool(prober: Prober, state: ProbeState) -> Finding:
    """Try one tool call; where none comes by itself, one that must come."""
    unknown = {"tools": None, "most_tools": 0}
    first = await prober.ask(questions.call_tool(), **unknown)
    if first.refusal or first.error:
        return failure(first, {"tools": False} if _names_tools(first) else {})
    if first.calls:
        return _call_finding(state, first, "by itself", (first,))
    forced = await prober.ask(questions.call_tool(ToolUse.REQUIRED), **unknown)
    both = (first, forced)
    if forced.calls and not forced.refusal:
        return _call_finding(state, forced, "only when it must", both)
    detail = "it answers without a call"
    if error := forced.refusal or forced.error:
        detail += f"; that it must is refused: {describe(error)}"
    return Finding(NO, detail, {}, both)


def _names_tools(answer: ProbeAnswer) -> bool:
    error = answer.refusal
    return error is not None and error.kind is RefusalKind.NO_TOOLS


def _call_finding(
    state: ProbeState, answer: ProbeAnswer, how: str, answers: tuple[ProbeAnswer, ...]
) -> Finding:
    state.called = answer.parts
    state.thinks = state.thinks or answer.thinks
    return Finding(YES, how, {"tools": True}, answers)


async def try_tools(prober: Prober, state: ProbeState) -> Finding:
    """Try two calls in one answer."""
    if not state.called:
        return Finding(SKIPPED, "no tool was called")
    answer = await prober.ask(questions.call_tools(), tools=None)
    if answer.refusal or answer.error:
        return failure(answer)
    count = len(answer.calls)
    return Finding(YES if count > 1 else NO, f"{count} in one answer", {}, (answer,))


async def try_results(prober: Prober, state: ProbeState) -> Finding:
    """Try the turn after a tool call, with the reasoning as it came."""
    if not state.called:
        return Finding(SKIPPED, "no tool was called")
    chat = questions.go_on(state.called)
    answer = await prober.ask(chat, replay=Replay.EVERY_TURN)
    if answer.refusal or answer.error:
        return failure(answer)
    reasoned = any(isinstance(part, ThinkingPart) for part in state.called)
    told = "with its reasoning" if reasoned else "there was no reasoning"
    return Finding(YES, told, {}, (answer,))


async def try_without_reasoning(prober: Prober, state: ProbeState) -> Finding:
    """Try the same turn without reasoning, as after a client that dropped it."""
    reasoned = any(isinstance(part, ThinkingPart) for part in state.called)
    if not reasoned:
        return Finding(SKIPPED, "no reasoning came with a call")
    bare = tuple(_bare(part) for part in state.called if not _is_thought(part))
    chat = questions.go_on(bare)
    answer = await prober.ask(chat, replay=Replay.NEVER, empty_reasoning=False)
    if answer.refusal or answer.error:
        return failure(answer, {"replay": Replay.TOOL_TURNS})
    return Finding(YES, "not needed", {}, (answer,))


def _is_thought(part: Part) -> bool:
    return isinstance(part, ThinkingPart)


def _bare(part: Part) -> Part:
    if isinstance(part, ToolCall):
        return ToolCall(part.id, part.name, part.arguments)
    return part
