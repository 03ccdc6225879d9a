"""A whole probe: its cost beforehand, its results, its limits."""

import pytest

from byok.core.errors import UpstreamRefused
from byok.dialects.model_facts import Price
from byok.upstream.probe.asking import Prober
from byok.upstream.probe.cases import CASES
from byok.upstream.probe.report import ProbeOutcome, ProbeResult, facts_of
from byok.upstream.probe.run import ProbeCost, estimate_cost, run_probe
from tests.fakes.clock import Clock
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import FakeUpstream, refusal


def test_the_cost_is_the_sum_of_all_cases() -> None:
    cost = estimate_cost(CASES, Price(3.0, 15.0))
    assert 10 < cost.requests < 25
    assert cost.dollars == pytest.approx(
        (3 * cost.input_tokens + 15 * cost.output_tokens) / 1e6
    )
    assert cost.input_tokens < 40_000
    unpriced = ProbeCost(cost.requests, cost.input_tokens, cost.output_tokens)
    for price in (None, Price(3.0), Price(None, 15.0)):
        assert estimate_cost(CASES, price) == unpriced


async def test_a_probe_finds_out_everything(fake: FakeUpstream, prober: Prober) -> None:
    model = ProbedModel()
    model.serve(fake)
    told: list[ProbeResult] = []
    results = await run_probe(prober, CASES, told.append)
    assert told == results
    outcomes = {result.case: result.outcome.value for result in results}
    assert outcomes == {
        "answer": "yes",
        "tool": "yes",
        "parallel tools": "yes",
        "reasoning": "yes",
        "tool result": "yes",
        "without reasoning": "refused",
        "picture": "yes",
        "temperature": "yes",
        "effort": "yes",
        "window": "no",
        "cache": "yes",
    }
    assert facts_of("m", results).known_fields() == {
        "tools": True,
        "images": True,
        "thinking": True,
        "efforts": ("low", "medium", "high"),
        "sampling": True,
        "replay": "tool_turns",
    }
    assert sum(result.requests for result in results) == len(model.bodies)
    assert len(model.bodies) <= 1.5 * estimate_cost(CASES, None).requests


async def test_a_probe_of_nobody_raises_its_error(
    fake: FakeUpstream, prober: Prober
) -> None:
    fake.play(refusal(401))
    with pytest.raises(UpstreamRefused):
        await run_probe(prober, CASES, lambda result: None)
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("seconds", "requests"), [(0.0, 60), (900.0, 1)], ids=["time", "requests"]
)
async def test_a_probe_has_limits(
    fake: FakeUpstream, prober: Prober, seconds: float, requests: int
) -> None:
    ProbedModel().serve(fake)
    clock = Clock()
    results = await run_probe(
        prober,
        CASES,
        lambda result: None,
        most_seconds=seconds,
        most_requests=requests,
        clock=clock,
    )
    skipped = [one for one in results if one.outcome is ProbeOutcome.SKIPPED]
    assert len(skipped) >= len(CASES) - 1
    assert {one.detail for one in skipped} == {"the probe took too long"}
