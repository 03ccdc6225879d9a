"""Checks that ask models something, which may cost: only if the user wants it."""

from collections.abc import Sequence

from byok.doctor.results import CannotCheck, CheckResult, doubtful, good, skip, wrong
from byok.doctor.surroundings import Surroundings
from byok.doctor.upstream_access import model_of, open_upstream
from byok.upstream.probe.asking import ProbeAnswer, Prober
from byok.upstream.probe.finding import ProbeState
from byok.upstream.probe.questions import count_to_thirty
from byok.upstream.probe.report import ProbeOutcome
from byok.upstream.probe.tool_cases import try_tool

QUESTION_SECONDS = 90.0  # a local server may have to load its model first
_NOT_ASKED = skip("no model is asked unless you want it", "byok doctor --ask-models")


async def asked_upstreams(around: Surroundings) -> Sequence[str]:
    """Return the upstreams whose models are asked; one row where none is."""
    return [*await around.upstreams()] if around.asks_models else ("",)


async def _prober(around: Surroundings, name: str) -> Prober:
    async def make() -> Prober:
        upstream = await open_upstream(around, name)
        model = await model_of(around, name)
        return Prober(upstream, model, seconds=QUESTION_SECONDS)

    return await around.once(f"prober {name}", make)


async def _answer(around: Surroundings, name: str) -> ProbeAnswer:
    """Return the answer to one question of a few words."""
    prober = await _prober(around, name)
    return await around.once(
        f"answer {name}", lambda: prober.ask_first(count_to_thirty())
    )


async def check_chat(around: Surroundings, name: str) -> CheckResult:
    """Check that the default model of an upstream answers."""
    if not around.asks_models:
        return _NOT_ASKED
    answer, model = await _answer(around, name), await model_of(around, name)
    if answer.error:
        hint = answer.error.hint or f"byok probe {name}/{model}"
        return wrong(f"{model}: {answer.error.message}", hint)
    if not answer.text.strip():
        return wrong(f"{model} answered without a word", f"byok probe {name}/{model}")
    return good(f"{model} answered in {answer.seconds:.1f} s")


async def check_streaming(around: Surroundings, name: str) -> CheckResult:
    """Check that the answer came in pieces."""
    if not around.asks_models:
        return _NOT_ASKED
    answer = await _answer(around, name)
    if answer.error or not answer.text:
        raise CannotCheck("there was no answer")
    if answer.is_streamed:
        return good(f"{answer.reads} pieces, the first after {answer.first:.1f} s")
    if answer.is_streamed is None:
        raise CannotCheck(
            "this machine is too busy to tell whether the answer came in pieces"
        )
    return doubtful(
        "the answer came in one piece",
        "Does a proxy or gateway before the model collect answers? Let it stream",
    )


async def check_tool_call(around: Surroundings, name: str) -> CheckResult:
    """Check that the model calls a tool, as agents need it."""
    if not around.asks_models:
        return _NOT_ASKED
    if (await _answer(around, name)).error:  # nor are two questions asked at once
        raise CannotCheck("there was no answer")
    prober = await _prober(around, name)
    finding = await try_tool(prober, ProbeState())
    if finding.outcome is ProbeOutcome.YES:
        return good(f"{prober.model} calls a tool, {finding.detail}")
    judge = doubtful if finding.outcome is ProbeOutcome.NO else wrong
    return judge(
        f"{prober.model} calls no tool: {finding.detail}",
        "Agents need tools: choose another model (byok models)",
    )
