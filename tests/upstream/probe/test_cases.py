"""Each case of the probe against models with whims."""

from typing import Any

import pytest

from byok.upstream.probe.asking import Prober, ProbeState
from byok.upstream.probe.cases import (
    CASES,
    overflow_case,
    result_of,
    try_answer,
    try_cache,
    try_efforts,
    try_overflow,
    try_picture,
    try_reasoning,
    try_sampling,
    try_window,
)
from byok.upstream.probe.report import ProbeOutcome
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import FakeUpstream, Script, refusal

YES, NO, REFUSED, FAILED, SKIPPED = (
    ProbeOutcome.YES,
    ProbeOutcome.NO,
    ProbeOutcome.REFUSED,
    ProbeOutcome.FAILED,
    ProbeOutcome.SKIPPED,
)


async def test_a_plain_answer_comes_in_pieces(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel().serve(fake)
    state = ProbeState()
    found = await try_answer(prober, state)
    assert (found.outcome, found.facts) == (YES, {"thinking": True})
    assert "pieces" in found.detail
    assert "tokens counted" in found.detail
    assert (await try_reasoning(prober, state)).outcome is YES


async def test_a_model_that_does_not_reason_says_so(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel(reasons=False, counts=False).serve(fake)
    state = ProbeState()
    found = await try_answer(prober, state)
    assert (found.facts, "not counted" in found.detail) == ({}, True)
    assert (await try_reasoning(prober, state)).outcome is NO


async def test_an_upstream_without_an_answer_fails(
    fake: FakeUpstream, prober: Prober
) -> None:
    fake.play(refusal(401))
    found = await try_answer(prober, ProbeState())
    assert found.outcome is REFUSED
    assert "it does not accept the key (upstream_auth)" in found.detail
    fake.play(Script([b"<html>"], headers={}))
    assert (await try_answer(prober, ProbeState())).outcome is FAILED


@pytest.mark.parametrize(
    ("images", "outcome", "facts"),
    [
        ("seen", YES, {"images": True}),
        ("unseen", NO, {}),
        ("refused", REFUSED, {"images": False}),
    ],
)
async def test_a_picture(
    fake: FakeUpstream,
    prober: Prober,
    images: str,
    outcome: ProbeOutcome,
    facts: dict[str, Any],
) -> None:
    ProbedModel(images=images).serve(fake)
    found = await try_picture(prober, ProbeState())
    assert (found.outcome, found.facts) == (outcome, facts)


@pytest.mark.parametrize(("accepted", "outcome"), [(True, YES), (False, REFUSED)])
async def test_a_temperature(
    fake: FakeUpstream, prober: Prober, *, accepted: bool, outcome: ProbeOutcome
) -> None:
    ProbedModel(sampling=accepted).serve(fake)
    found = await try_sampling(prober, ProbeState())
    assert (found.outcome, found.facts) == (outcome, {"sampling": accepted})


@pytest.mark.parametrize(
    ("efforts", "thinks", "outcome", "facts", "requests"),
    [
        (("low", "high"), True, YES, {"efforts": ("low", "high")}, 7),
        ((), True, REFUSED, {}, 2),
        (None, False, YES, {}, 7),
    ],
)
async def test_efforts(
    fake: FakeUpstream,
    prober: Prober,
    efforts: tuple[str, ...] | None,
    thinks: bool,
    outcome: ProbeOutcome,
    facts: dict[str, Any],
    requests: int,
) -> None:
    ProbedModel(efforts=efforts).serve(fake)
    found = await try_efforts(prober, ProbeState(thinks=thinks))
    assert (found.outcome, found.facts) == (outcome, facts)
    assert len(found.answers) == requests


async def test_efforts_fail_with_the_upstream(
    fake: FakeUpstream, prober: Prober
) -> None:
    fake.play(Script([b"<html>"], headers={}))
    assert (await try_efforts(prober, ProbeState())).outcome is FAILED


@pytest.mark.parametrize(
    ("model", "outcome", "detail"),
    [
        (ProbedModel(), YES, "tokens read"),
        (ProbedModel(caches=False), NO, "0 of "),
        (ProbedModel(counts=False), NO, "tokens not counted"),
    ],
    ids=["cached", "not cached", "not counted"],
)
async def test_a_cache(
    fake: FakeUpstream,
    prober: Prober,
    model: ProbedModel,
    outcome: ProbeOutcome,
    detail: str,
) -> None:
    model.serve(fake)
    found = await try_cache(prober, ProbeState())
    assert (found.outcome, detail in found.detail) == (outcome, True)
    assert len(found.answers) == 2


async def test_a_cache_is_tried_again_within_the_window(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel(window=9000).serve(fake)
    found = await try_cache(prober, ProbeState())
    assert (found.outcome, len(found.answers)) == (YES, 3)
    fake.reply = None
    fake.play(refusal(401))
    assert (await try_cache(prober, ProbeState())).outcome is REFUSED


async def test_the_window_is_that_of_the_facts(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel(window=9000).serve(fake)
    assert (await try_window(prober, ProbeState())).outcome is NO
    assert (await try_overflow(prober, ProbeState())).outcome is SKIPPED
    await try_cache(prober, ProbeState())  # its refusal names the window
    found = await try_window(prober, ProbeState())
    assert (found.outcome, found.detail) == (YES, "9000 tokens, by the refusal")
    found = await try_overflow(prober, ProbeState())
    assert (found.outcome, found.facts) == (YES, {"window": 9000})


async def test_an_overflow_that_is_answered_is_told(
    fake: FakeUpstream, prober: Prober
) -> None:
    model = ProbedModel(window=9000)
    model.serve(fake)
    await try_cache(prober, ProbeState())
    model.window = 10**9
    found = await try_overflow(prober, ProbeState())
    assert (found.outcome, found.detail.startswith("answered")) == (NO, True)
    fake.reply = None
    fake.play(refusal(401))
    assert (await try_overflow(prober, ProbeState())).outcome is REFUSED


async def test_a_result_counts_what_its_answers_cost(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel().serve(fake)
    finding = await try_answer(prober, ProbeState())
    result = result_of(CASES[0], finding)
    assert (result.case, result.outcome, result.requests) == ("answer", YES, 1)
    assert result.input_tokens > 0
    assert result.output_tokens == 3
    assert result.facts == {"thinking": True}


def test_cases_have_names_of_their_own_and_the_first_is_the_plain_one() -> None:
    names = [case.name for case in (*CASES, overflow_case(8192))]
    assert len(set(names)) == len(names)
    assert names[0] == "answer"
    assert overflow_case(8192).input_tokens > 8192
