"""The cases of the probe: what each asks, and what its answer shows.

A case differs from the first one in one thing. So where a request of it is refused,
that thing is refused, although byok may have found a way around it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from byok.core.errors import ContextLengthExceeded, RefusalKind
from byok.dialects.efforts import EFFORTS
from byok.dialects.model_facts import FactSource
from byok.upstream.probe import questions
from byok.upstream.probe.asking import (
    Finding,
    ProbeAnswer,
    Prober,
    ProbeState,
    describe,
    failure,
)
from byok.upstream.probe.report import ProbeOutcome, ProbeResult
from byok.upstream.probe.tool_cases import (
    try_results,
    try_tool,
    try_tools,
    try_without_reasoning,
)

YES, NO = ProbeOutcome.YES, ProbeOutcome.NO
REFUSED, FAILED = ProbeOutcome.REFUSED, ProbeOutcome.FAILED
SKIPPED = ProbeOutcome.SKIPPED
_CACHED = 0.5  # of the second prompt, at least


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """A case, and what it costs at most: requests, and tokens of all of them."""

    name: str
    run: Callable[[Prober, ProbeState], Awaitable[Finding]]
    requests: int
    input_tokens: int
    output_tokens: int = questions.MAX_TOKENS


async def try_answer(prober: Prober, state: ProbeState) -> Finding:
    """Try a plain answer: that it comes, in pieces, and with a count of tokens."""
    answer = await prober.ask_first(questions.count_to_thirty())
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
    del prober
    return Finding(YES if state.thinks else NO, "" if state.thinks else "none came")


async def try_picture(prober: Prober, state: ProbeState) -> Finding:
    """Try a picture, and whether the model saw it."""
    del state
    answer = await prober.ask(questions.show_picture(), images=None)
    if answer.refusal or answer.error:
        is_meant = answer.refusal and answer.refusal.kind is RefusalKind.NO_IMAGES
        return failure(answer, {"images": False} if is_meant else {})
    if questions.COLOUR in answer.text.lower():
        return Finding(YES, "seen", {"images": True}, (answer,))
    return Finding(NO, "accepted, but not seen", {}, (answer,))


async def try_sampling(prober: Prober, state: ProbeState) -> Finding:
    """Try temperature and top_p."""
    del state
    chat = questions.count_to_thirty(temperature=0.3, top_p=0.9)
    answer = await prober.ask(chat, sampling=None)
    if answer.refusal or answer.error:
        return failure(answer, {"sampling": False})
    return Finding(YES, "", {"sampling": True}, (answer,))


async def try_efforts(prober: Prober, state: ProbeState) -> Finding:
    """Try every effort; after two refusals of the usual ones no further one.

    A model that does not reason may ignore them: then nothing is learned.
    """
    taken: list[str] = []
    answers: list[ProbeAnswer] = []
    for effort in ("low", "high", *(e for e in EFFORTS if e not in ("low", "high"))):
        if len(answers) == 2 and not taken:
            break
        chat = questions.count_to_thirty(effort=effort)
        answer = await prober.ask(chat, efforts=(effort,))
        answers.append(answer)
        if answer.error and not answer.refusal:
            return Finding(FAILED, describe(answer.error), {}, tuple(answers))
        if not answer.refusal:
            taken.append(effort)
    accepted = tuple(effort for effort in EFFORTS if effort in taken)
    if not accepted:
        return Finding(REFUSED, "none is accepted", {}, tuple(answers))
    reasons = state.thinks or prober.facts.facts.thinking
    facts = {"efforts": accepted} if reasons else {}
    detail = ", ".join(accepted) if reasons else "accepted, perhaps ignored"
    return Finding(YES, detail, facts, tuple(answers))


async def try_cache(prober: Prober, state: ProbeState) -> Finding:
    """Try the same long beginning twice, and see what was read from a cache."""
    del state
    await prober.window()  # the prompt must fit
    answers = [await _share_prefix(prober, 1)]
    if isinstance(answers[0].refusal, ContextLengthExceeded):
        answers.append(await _share_prefix(prober, 1))  # within the window by now
    if not answers[-1].error:
        answers.append(await _share_prefix(prober, 2))
    last = answers[-1]
    if last.refusal or last.error:
        told = failure(last)
        return Finding(told.outcome, told.detail, {}, tuple(answers))
    if last.usage is None:
        return Finding(NO, "tokens not counted", {}, tuple(answers))
    read, sent = last.usage.cache_read_tokens, last.usage.input_tokens
    outcome = YES if read >= _CACHED * max(1, sent) else NO
    return Finding(outcome, f"{read} of {sent} tokens read", {}, tuple(answers))


async def _share_prefix(prober: Prober, number: int) -> ProbeAnswer:
    window = prober.facts.facts.window
    return await prober.ask(questions.share_prefix(number, window))


async def try_window(prober: Prober, state: ProbeState) -> Finding:
    """Tell the window that the server reports."""
    del state
    await prober.window()
    found = prober.facts
    if not found.facts.window:
        return Finding(NO, "unknown")
    source = found.sources["window"]
    return Finding(YES, f"{found.facts.window} tokens, by the {source}")


async def try_overflow(prober: Prober, state: ProbeState) -> Finding:
    """Try a prompt that is longer than the window, which must be refused."""
    del state
    known = prober.facts
    window = known.facts.window
    if not window:
        return Finding(SKIPPED, "the window is unknown")
    answer = await prober.ask(questions.exceed_window(window))
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


PREFIX_TOKENS = 10_000
CASES = (
    ProbeCase("answer", try_answer, 1, 60),
    ProbeCase("tool", try_tool, 2, 400, 2 * questions.MAX_TOKENS),
    ProbeCase("parallel tools", try_tools, 1, 220),
    ProbeCase("reasoning", try_reasoning, 0, 0, 0),
    ProbeCase("tool result", try_results, 1, 1300),
    ProbeCase("without reasoning", try_without_reasoning, 1, 300),
    ProbeCase("picture", try_picture, 1, 1100),
    ProbeCase("temperature", try_sampling, 1, 60),
    ProbeCase("effort", try_efforts, 7, 420, 7 * questions.MAX_TOKENS),
    ProbeCase("cache", try_cache, 3, 2 * PREFIX_TOKENS, 2 * questions.MAX_TOKENS),
    ProbeCase("window", try_window, 0, 0, 0),
)


def overflow_case(window: int) -> ProbeCase:
    """Return the case of a prompt that is longer than a window."""
    return ProbeCase("overflow", try_overflow, 1, 2 * window)


def result_of(case: ProbeCase, finding: Finding) -> ProbeResult:
    """Return the result of a case, with what its answers cost."""
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
