"""Tools, and reasoning beside their calls, against models with whims."""

import pytest

from byok.dialects.model_facts import Replay
from byok.upstream.probe.asking import Prober, ProbeState
from byok.upstream.probe.report import ProbeOutcome
from byok.upstream.probe.tool_cases import (
    try_results,
    try_tool,
    try_tools,
    try_without_reasoning,
)
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import FakeUpstream, refusal

YES, NO, REFUSED, SKIPPED = (
    ProbeOutcome.YES,
    ProbeOutcome.NO,
    ProbeOutcome.REFUSED,
    ProbeOutcome.SKIPPED,
)


@pytest.mark.parametrize(
    ("model", "outcome", "detail", "facts"),
    [
        (ProbedModel(), YES, "by itself", {"tools": True}),
        (ProbedModel(calls="if it must"), YES, "only when it must", {"tools": True}),
        (ProbedModel(calls="never"), NO, "it answers without a call", {}),
        (ProbedModel(tools=False), REFUSED, "(upstream_no_tools)", {"tools": False}),
    ],
    ids=["by itself", "if it must", "never", "refused"],
)
async def test_a_tool(
    fake: FakeUpstream,
    prober: Prober,
    model: ProbedModel,
    outcome: ProbeOutcome,
    detail: str,
    facts: dict[str, bool],
) -> None:
    model.serve(fake)
    state = ProbeState()
    found = await try_tool(prober, state)
    assert (found.outcome, found.facts) == (outcome, facts)
    assert detail in found.detail
    assert bool(state.called) is (outcome is YES)
    several = await try_tools(prober, state)
    assert (several.outcome is SKIPPED) is (not state.called)
    assert (several.outcome is YES) is (detail == "by itself")


async def test_one_call_at_a_time(fake: FakeUpstream, prober: Prober) -> None:
    ProbedModel(parallel=1).serve(fake)
    state = ProbeState()
    await try_tool(prober, state)
    found = await try_tools(prober, state)
    assert (found.outcome, found.detail) == (NO, "1 in one answer")


async def test_reasoning_that_must_come_back(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel().serve(fake)
    state = ProbeState()
    await try_tool(prober, state)
    found = await try_results(prober, state)
    assert (found.outcome, found.detail) == (YES, "with its reasoning")
    found = await try_without_reasoning(prober, state)
    assert (found.outcome, found.facts) == (REFUSED, {"replay": Replay.TOOL_TURNS})


async def test_reasoning_that_need_not_come_back(
    fake: FakeUpstream, prober: Prober
) -> None:
    model = ProbedModel(needs_reasoning=False)
    model.serve(fake)
    state = ProbeState()
    await try_tool(prober, state)
    found = await try_without_reasoning(prober, state)
    assert (found.outcome, found.facts, found.detail) == (YES, {}, "not needed")
    assert "Hm." not in str(model.bodies[-1])


async def test_without_reasoning_or_calls_there_is_nothing_to_try(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel(reasons=False, needs_reasoning=False).serve(fake)
    state = ProbeState()
    assert (await try_results(prober, state)).outcome is SKIPPED
    await try_tool(prober, state)
    assert (await try_results(prober, state)).detail == "there was no reasoning"
    assert (await try_without_reasoning(prober, state)).outcome is SKIPPED


async def test_a_turn_with_results_that_is_refused(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel().serve(fake)
    state = ProbeState()
    await try_tool(prober, state)
    fake.reply = None
    fake.play(refusal(401))
    for case in (try_tools, try_results, try_tool):
        found = await case(prober, state)
        assert (found.outcome, found.facts) == (REFUSED, {})
