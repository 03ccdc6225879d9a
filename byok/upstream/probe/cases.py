"""The cases of the probe: their questions, what the answers show, and a run of them.

A case differs from the first one in one feature. So if a request of the case is
refused, the model refuses that feature, although byok may have found a remedy.
"""

import base64
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Part,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from byok.core.errors import ContextLengthExceeded, RefusalKind
from byok.dialects.model_facts import EFFORTS, FactSource, Price, Replay
from byok.upstream.probe.asking import (
    Finding,
    ProbeAnswer,
    Prober,
    ProbeState,
    describe,
    failure,
)
from byok.upstream.probe.report import ProbeOutcome, ProbeResult

YES, NO, SKIPPED = ProbeOutcome.YES, ProbeOutcome.NO, ProbeOutcome.SKIPPED
REFUSED, FAILED = ProbeOutcome.REFUSED, ProbeOutcome.FAILED
MAX_TOKENS = 1024  # of each answer; a model that reasons needs some of them for that
PREFIX_TOKENS = 10_000  # of the prompt that is to be cached, at most
_MIN_CACHED_SHARE = 0.5  # of the second prompt
_MAX_PROBE_SECONDS = 900.0
_MAX_PROBE_REQUESTS = 60  # with those that byok repeats
_MILLION = 1e6
_SIDE = 64  # pixels of the picture; some APIs refuse fewer than 28
_RED = b"\xff\x00\x00"
_PREFIX_LINES = 450  # about 9,000 tokens: no vendor caches less than 4,096 or so
_LINE_TOKENS = 30  # at most
_WEATHER = ToolDefinition(
    "get_weather",
    "Return the current weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Name of the city"}},
        "required": ["city"],
    },
)
_SYSTEM = Message(Role.SYSTEM, (TextPart("You answer briefly."),))
COLOUR = "red"


def _user(*parts: Part) -> Message:
    return Message(Role.USER, parts)


def make_question(
    *messages: Message,
    sampling: Sampling | None = None,
    tools: tuple[ToolDefinition, ...] = (),
    use: ToolUse = ToolUse.AUTO,
    conversation: str = "",
) -> ChatRequest:
    """Return a request with these messages after the system message."""
    return ChatRequest(
        (_SYSTEM, *messages),
        tools,
        sampling=sampling or Sampling(max_tokens=MAX_TOKENS),
        tool_choice=ToolChoice(use),
        agent=bool(tools),
        client_parallel_tools=True,
        conversation=conversation,
    )


def count_to_thirty(
    *,
    effort: str = "",
    temperature: float | None = None,
    top_p: float | None = None,
) -> ChatRequest:
    """Ask for an answer that is long enough to come in pieces."""
    words = TextPart("Write the numbers from 1 to 30, separated by spaces.")
    sampling = Sampling(temperature, top_p, MAX_TOKENS, effort)
    return make_question(_user(words), sampling=sampling)


def call_tool(use: ToolUse = ToolUse.AUTO) -> ChatRequest:
    """Ask for one call of a tool."""
    words = TextPart("What is the weather in Paris? Use the tool.")
    return make_question(_user(words), tools=(_WEATHER,), use=use)


def call_tools() -> ChatRequest:
    """Ask for two calls in one answer."""
    words = TextPart(
        "What is the weather in Paris, and what is it in Oslo? Call the tool for both "
        "cities now, in one answer."
    )
    return make_question(_user(words), tools=(_WEATHER,))


def send_results(answer: tuple[Part, ...]) -> ChatRequest:
    """Send the results of an answer that called tools."""
    calls = [part for part in answer if isinstance(part, ToolCall)]
    results = [
        Message(Role.TOOL, (ToolResult(call.id, call.name, "18 degrees, sunny"),))
        for call in calls
    ]
    return make_question(
        *call_tool().messages[1:],
        Message(Role.ASSISTANT, answer),
        *results,
        tools=(_WEATHER,),
    )


def show_picture() -> ChatRequest:
    """Ask for the colour of a picture that has only one."""
    words = TextPart("Which colour is this picture? Answer with one word.")
    return make_question(_user(words, ImagePart("image/png", _picture())))


def share_prefix(number: int, window: int) -> ChatRequest:
    """Ask a question after a long text that is the same each time.

    The text fills less than half of a window of so many tokens; 0 is unknown.
    """
    count = min(_PREFIX_LINES, window // _LINE_TOKENS // 2 or _PREFIX_LINES)
    lines = "\n".join(
        f"Rule {n}: in room {n * 7 % 100} the lamp number {n} burns until {n % 24} h."
        for n in range(count)
    )
    words = TextPart(f"{lines}\n\nAnswer with the word ready. This is try {number}.")
    return make_question(_user(words), conversation="byok-probe")


def exceed_window(tokens: int) -> ChatRequest:
    """Ask with more tokens than a window has; each word is at least one token."""
    return make_question(_user(TextPart("lamp " * (tokens + 64))))


def _picture() -> str:
    """Return a PNG of one colour in base64 (RFC 2083)."""
    rows = (b"\x00" + _RED * _SIDE) * _SIDE
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n"
    for name, content in chunks:
        data += struct.pack(">I", len(content)) + name + content
        data += struct.pack(">I", zlib.crc32(name + content))
    return base64.b64encode(data).decode()


async def try_tool(prober: Prober, state: ProbeState) -> Finding:
    """Try one tool call; if the model makes none by itself, a required one."""
    unknown = {"tools": None, "most_tools": 0}
    first = await prober.ask(call_tool(), **unknown)
    if first.refusal or first.error:
        return failure(first, {"tools": False} if _names_tools(first) else {})
    if first.calls:
        return _call_finding(state, first, "by itself", (first,))
    forced = await prober.ask(call_tool(ToolUse.REQUIRED), **unknown)
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
    answer = await prober.ask(call_tools(), tools=None)
    if answer.refusal or answer.error:
        return failure(answer)
    count = len(answer.calls)
    return Finding(YES if count > 1 else NO, f"{count} in one answer", {}, (answer,))


async def try_results(prober: Prober, state: ProbeState) -> Finding:
    """Try the turn after a tool call, with the reasoning as it came."""
    if not state.called:
        return Finding(SKIPPED, "no tool was called")
    answer = await prober.ask(send_results(state.called), replay=Replay.EVERY_TURN)
    if answer.refusal or answer.error:
        return failure(answer)
    has_reasoning = any(isinstance(part, ThinkingPart) for part in state.called)
    detail = "with its reasoning" if has_reasoning else "there was no reasoning"
    return Finding(YES, detail, {}, (answer,))


async def try_without_reasoning(prober: Prober, state: ProbeState) -> Finding:
    """Try the same turn without reasoning, as after a client that dropped it."""
    if not any(isinstance(part, ThinkingPart) for part in state.called):
        return Finding(SKIPPED, "no reasoning came with a call")
    parts = tuple(
        ToolCall(part.id, part.name, part.arguments)
        if isinstance(part, ToolCall)
        else part
        for part in state.called
        if not isinstance(part, ThinkingPart)
    )
    chat = send_results(parts)
    answer = await prober.ask(chat, replay=Replay.NEVER, empty_reasoning=False)
    if answer.refusal or answer.error:
        return failure(answer, {"replay": Replay.TOOL_TURNS})
    return Finding(YES, "not needed", {}, (answer,))


async def try_answer(prober: Prober, state: ProbeState) -> Finding:
    """Try a plain answer: whether it comes in pieces, and with token counts."""
    answer = await prober.ask_first(count_to_thirty())
    if answer.error:
        return failure(answer)
    state.thinks = answer.thinks
    remarks = [
        _pieces(answer),
        f"the first after {answer.first:.1f} s",
        "tokens counted" if answer.usage else "tokens not counted",
    ]
    if answer.refusals:
        remarks.append("after a change to the request")
    facts = {"thinking": True} if answer.thinks else {}
    outcome = YES if answer.text.strip() else NO
    return Finding(outcome, ", ".join(remarks), facts, (answer,))


def _pieces(answer: ProbeAnswer) -> str:
    match answer.is_streamed:
        case True:
            return f"{answer.reads} pieces"
        case False:
            return "in one piece"
        case None:
            return "in one piece or in several, as this machine was busy"


async def try_reasoning(prober: Prober, state: ProbeState) -> Finding:
    """Tell whether reasoning came with any answer so far."""
    return Finding(YES if state.thinks else NO, "" if state.thinks else "none came")


async def try_picture(prober: Prober, state: ProbeState) -> Finding:
    """Try a picture, and whether the model saw it."""
    answer = await prober.ask(show_picture(), images=None)
    if answer.refusal or answer.error:
        refuses = answer.refusal and answer.refusal.kind is RefusalKind.NO_IMAGES
        return failure(answer, {"images": False} if refuses else {})
    if COLOUR in answer.text.lower():
        return Finding(YES, "seen", {"images": True}, (answer,))
    return Finding(NO, "accepted, but not seen", {}, (answer,))


async def try_sampling(prober: Prober, state: ProbeState) -> Finding:
    """Try temperature and top_p."""
    chat = count_to_thirty(temperature=0.3, top_p=0.9)
    answer = await prober.ask(chat, sampling=None)
    if answer.refusal or answer.error:
        return failure(answer, {"sampling": False})
    return Finding(YES, "", {"sampling": True}, (answer,))


async def try_efforts(prober: Prober, state: ProbeState) -> Finding:
    """Try every effort; if the two usual ones are refused, no further one.

    A model that does not reason may ignore efforts: then nothing is learned.
    """
    unrefused: list[str] = []
    answers: list[ProbeAnswer] = []
    for effort in ("low", "high", *(e for e in EFFORTS if e not in ("low", "high"))):
        if len(answers) == 2 and not unrefused:
            break
        chat = count_to_thirty(effort=effort)
        answer = await prober.ask(chat, efforts=(effort,))
        answers.append(answer)
        if answer.error and not answer.refusal:
            return Finding(FAILED, describe(answer.error), {}, tuple(answers))
        if not answer.refusal:
            unrefused.append(effort)
    accepted = tuple(effort for effort in EFFORTS if effort in unrefused)
    if not accepted:
        return Finding(REFUSED, "none is accepted", {}, tuple(answers))
    reasons = state.thinks or prober.facts.facts.thinking
    facts = {"efforts": accepted} if reasons else {}
    detail = ", ".join(accepted) if reasons else "accepted, perhaps ignored"
    return Finding(YES, detail, facts, tuple(answers))


async def try_cache(prober: Prober, state: ProbeState) -> Finding:
    """Try the same long prefix twice, and whether it was read from a cache."""
    await prober.window()  # the prompt must fit
    answers = [await _ask_with_prefix(prober, 1)]
    if isinstance(answers[0].refusal, ContextLengthExceeded):
        answers.append(await _ask_with_prefix(prober, 1))  # now the window is known
    if not answers[-1].error:
        answers.append(await _ask_with_prefix(prober, 2))
    last = answers[-1]
    if last.refusal or last.error:
        failed = failure(last)
        return Finding(failed.outcome, failed.detail, {}, tuple(answers))
    if last.usage is None:
        return Finding(NO, "tokens not counted", {}, tuple(answers))
    read, sent = last.usage.cache_read_tokens, last.usage.input_tokens
    outcome = YES if read >= _MIN_CACHED_SHARE * max(1, sent) else NO
    return Finding(outcome, f"{read} of {sent} tokens read", {}, tuple(answers))


async def _ask_with_prefix(prober: Prober, number: int) -> ProbeAnswer:
    window = prober.facts.facts.window
    return await prober.ask(share_prefix(number, window))


async def try_window(prober: Prober, state: ProbeState) -> Finding:
    """Report the window that the server reports."""
    await prober.window()
    known = prober.facts
    if not known.facts.window:
        return Finding(NO, "unknown")
    source = known.sources["window"]
    return Finding(YES, f"{known.facts.window} tokens, by the {source}")


async def try_overflow(prober: Prober, state: ProbeState) -> Finding:
    """Try a prompt that is longer than the window, which must be refused."""
    known = prober.facts
    window = known.facts.window
    if not window:
        return Finding(SKIPPED, "the window is unknown")
    answer = await prober.ask(exceed_window(window))
    error = answer.refusal or answer.error
    if isinstance(error, ContextLengthExceeded):
        named = f"it names {error.window} tokens" if error.window else "it names none"
        may_change = known.sources["window"] is FactSource.LOADED
        facts = {"window": error.window} if error.window and not may_change else {}
        return Finding(YES, f"too long is refused; {named}", facts, (answer,))
    if error:
        return failure(answer)
    counted = answer.usage.input_tokens if answer.usage else 0
    return Finding(NO, f"answered; it counted {counted} tokens", {}, (answer,))


class ProbeCase(Struct, frozen=True):
    """A case and its maximum cost: the requests, and the tokens of all of them."""

    name: str
    run: Callable[[Prober, ProbeState], Awaitable[Finding]]
    requests: int
    input_tokens: int
    output_tokens: int = MAX_TOKENS


CASES = (
    ProbeCase("answer", try_answer, 1, 60),
    ProbeCase("tool", try_tool, 2, 400, 2 * MAX_TOKENS),
    ProbeCase("parallel tools", try_tools, 1, 220),
    ProbeCase("reasoning", try_reasoning, 0, 0, 0),
    ProbeCase("tool result", try_results, 1, 1300),
    ProbeCase("without reasoning", try_without_reasoning, 1, 300),
    ProbeCase("picture", try_picture, 1, 1100),
    ProbeCase("temperature", try_sampling, 1, 60),
    ProbeCase("effort", try_efforts, 7, 420, 7 * MAX_TOKENS),
    ProbeCase("cache", try_cache, 3, 2 * PREFIX_TOKENS, 2 * MAX_TOKENS),
    ProbeCase("window", try_window, 0, 0, 0),
)


def overflow_case(window: int) -> ProbeCase:
    """Return the case of a prompt that is longer than a window."""
    return ProbeCase("overflow", try_overflow, 1, 2 * window)


def result_of(case: ProbeCase, finding: Finding) -> ProbeResult:
    """Return the result of a case, with the cost of its answers."""
    usages = [answer.usage for answer in finding.answers if answer.usage]
    return ProbeResult(
        case.name,
        finding.outcome,
        finding.detail,
        sum(answer.requests for answer in finding.answers),
        sum(usage.input_tokens for usage in usages),
        sum(usage.output_tokens for usage in usages),
        sum(answer.seconds for answer in finding.answers),
        finding.facts,
    )


class ProbeCost(Struct, frozen=True):
    """The maximum cost of a probe; `dollars` is None if no price is known."""

    requests: int
    input_tokens: int
    output_tokens: int
    dollars: float | None = None


def estimate_cost(cases: Iterable[ProbeCase], price: Price | None) -> ProbeCost:
    """Return the maximum cost of these cases."""
    cases = tuple(cases)
    input_tokens = sum(case.input_tokens for case in cases)
    output_tokens = sum(case.output_tokens for case in cases)
    requests = sum(case.requests for case in cases)
    if price is None or price.input is None or price.output is None:
        return ProbeCost(requests, input_tokens, output_tokens)
    dollars = (input_tokens * price.input + output_tokens * price.output) / _MILLION
    return ProbeCost(requests, input_tokens, output_tokens, dollars)


async def run_probe(
    prober: Prober,
    cases: Iterable[ProbeCase],
    on_result: Callable[[ProbeResult], None],
    *,
    max_seconds: float = _MAX_PROBE_SECONDS,
    max_requests: int = _MAX_PROBE_REQUESTS,
    clock: Callable[[], float] = time.monotonic,
) -> list[ProbeResult]:
    """Run the cases; those beyond the limits are skipped.

    Raises:
        ByokError: the model does not answer the first question.
    """
    state, results = ProbeState(), list[ProbeResult]()
    deadline, requests = clock() + max_seconds, 0
    for case in cases:
        if clock() >= deadline or requests >= max_requests:
            finding = Finding(ProbeOutcome.SKIPPED, "the probe took too long")
        else:
            finding = await case.run(prober, state)
        error = next((answer.error for answer in finding.answers), None)
        if not results and error is not None:
            raise error
        result = result_of(case, finding)
        requests += result.requests
        results.append(result)
        on_result(result)
    return results
