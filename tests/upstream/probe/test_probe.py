"""The probe against models with whims: what each case finds, its cost, its limits."""

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import given

from byok.core.chat import TextPart, ThinkingPart
from byok.core.errors import UpstreamRefused, UpstreamTimeout
from byok.dialects.base import DIALECTS
from byok.dialects.model_facts import (
    FactSource,
    ModelFacts,
    Price,
    Replay,
    SourcedFacts,
)
from byok.upstream.client import HttpUpstream
from byok.upstream.model_facts import Profile
from byok.upstream.probe import cases
from byok.upstream.probe.asking import LatenessWatch, ProbeAnswer, Prober
from byok.upstream.probe.cases import (
    CASES,
    ProbeCost,
    estimate_cost,
    overflow_case,
    run_probe,
)
from byok.upstream.probe.report import (
    ProbeOutcome,
    ProbeResult,
    export_profile,
    facts_of,
    read_results,
    write_report,
)
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, Key
from tests.fakes.clock import Clock
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import FakeUpstream, Script, refusal
from tests.fakes.values import VALUES


def make_prober(
    fake: FakeUpstream, transports: Transports, seconds: float = 5
) -> Prober:
    api = Api(DIALECTS["openai_chat"]("openai_compatible"), fake.url)
    spec = UpstreamSpec("fake", (api,), timeouts=PATIENT)
    return Prober(HttpUpstream(spec, transports, Key()), "m", seconds=seconds)


@pytest.fixture
def prober(fake: FakeUpstream, transports: Transports) -> Prober:
    return make_prober(fake, transports)


async def run(prober: Prober, *names: str) -> dict[str, ProbeResult]:
    """Run the plain case and those with these names."""
    cases = [case for case in CASES if case.name in ("answer", *names)]
    results = await run_probe(prober, cases, lambda result: None)
    return {result.case: result for result in results}


async def test_a_probe_finds_out_everything(fake: FakeUpstream, prober: Prober) -> None:
    model = ProbedModel()
    model.serve(fake)
    told: list[ProbeResult] = []
    results = await run_probe(prober, CASES, told.append)
    assert told == results
    assert {one.case: one.outcome.value for one in results} == {
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
    details = {one.case: one.detail for one in results}
    assert "pieces" in details["answer"] and "tokens counted" in details["answer"]
    assert details["tool result"] == "with its reasoning"
    assert facts_of("m", results).known_fields() == {
        "tools": True,
        "images": True,
        "thinking": True,
        "efforts": ("low", "medium", "high"),
        "sampling": True,
        "replay": Replay.TOOL_TURNS,
    }
    assert sum(one.requests for one in results) == len(model.bodies)
    assert len(model.bodies) <= 1.5 * estimate_cost(CASES, None).requests


WHIMS: dict[str, tuple[ProbedModel, str, str, str, dict[str, Any]]] = {
    "a tool if it must": (
        ProbedModel(calls="if it must"), "tool", "yes", "only when", {"tools": True},
    ),
    "no call": (ProbedModel(calls="never"), "tool", "no", "without a call", {}),
    "no tools": (
        ProbedModel(tools=False), "tool", "refused", "(upstream_no_tools)",
        {"tools": False},
    ),
    "one call": (ProbedModel(parallel=1), "parallel tools", "no", "1 in one", {}),
    "reasoning in vain": (
        ProbedModel(needs_reasoning=False), "without reasoning", "yes", "not needed", {}
    ),
    "no reasoning beside calls": (
        ProbedModel(reasons=False, needs_reasoning=False), "without reasoning",
        "not tried", "no reasoning came", {},
    ),
    "unseen": (ProbedModel(images="unseen"), "picture", "no", "not seen", {}),
    "no pictures": (
        ProbedModel(images="refused"), "picture", "refused", "no_images",
        {"images": False},
    ),
    "two efforts": (
        ProbedModel(efforts=("low", "high")), "effort", "yes", "low, high",
        {"efforts": ("low", "high")},
    ),
    "efforts in vain": (
        ProbedModel(efforts=None, reasons=False), "effort", "yes", "perhaps ignored", {}
    ),
    "no cache": (ProbedModel(caches=False), "cache", "no", "0 of ", {}),
    "a small window": (ProbedModel(window=9000), "window", "yes", "9000 tokens", {}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "case", "outcome", "detail", "facts"), WHIMS.values(), ids=WHIMS
)
async def test_each_whim_is_found(
    fake: FakeUpstream,
    prober: Prober,
    model: ProbedModel,
    case: str,
    outcome: str,
    detail: str,
    facts: dict[str, Any],
) -> None:
    model.serve(fake)
    found = (await run(prober, "tool", "cache", case))[case]
    assert (found.outcome, found.facts) == (outcome, facts)
    assert detail in found.detail
    if (case, outcome) == ("effort", "refused"):
        assert found.requests == 4, "no third one is tried"


async def test_an_overflow_is_refused_or_told(
    fake: FakeUpstream, prober: Prober
) -> None:
    model = ProbedModel(window=9000)
    model.serve(fake)
    await run(prober, "cache")  # its refusal names the window
    cases = (CASES[0], overflow_case(9000))
    _, refused = await run_probe(prober, cases, lambda result: None)
    assert (refused.outcome, refused.facts) == ("yes", {"window": 9000})
    model.window = 10**9
    _, told = await run_probe(prober, cases, lambda result: None)
    assert (told.outcome, told.detail.startswith("answered")) == ("no", True)


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
    results = await run_probe(
        prober,
        CASES,
        lambda result: None,
        max_seconds=seconds,
        max_requests=requests,
        clock=Clock(),
    )
    skipped = [one for one in results if one.outcome is ProbeOutcome.SKIPPED]
    assert len(skipped) >= len(CASES) - 1
    assert {one.detail for one in skipped} == {"the probe took too long"}


def test_the_cost_is_the_sum_of_all_cases() -> None:
    cost = estimate_cost(CASES, Price(3.0, 15.0))
    assert 10 < cost.requests < 25 and cost.input_tokens < 40_000
    dollars = (3 * cost.input_tokens + 15 * cost.output_tokens) / 1e6
    assert cost.dollars == pytest.approx(dollars)
    unpriced = ProbeCost(cost.requests, cost.input_tokens, cost.output_tokens)
    for price in (None, Price(3.0), Price(None, 15.0)):
        assert estimate_cost(CASES, price) == unpriced


async def test_an_answer_is_noted_with_its_parts_and_refusals(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel(sampling=False).serve(fake)
    warm = cases.count_to_thirty(temperature=0.3)
    for _ in range(2):  # ways around refusals are kept from the first question only
        answer = await prober.ask(warm, sampling=None)
        thought, said = answer.parts
        assert isinstance(thought, ThinkingPart)
        assert (thought.text, said) == ("Hm.", TextPart("1 2 3"))
        assert (answer.refusal is not None, answer.requests) == (True, 2)
        assert 0 < answer.first < answer.seconds
    assert (await prober.ask_first(warm)).refusal
    assert (await prober.ask(warm)).refusal is None


async def test_an_answer_without_end_is_given_up(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([], end="hang"))
    prober = make_prober(fake, transports, seconds=0.05)
    answer = await prober.ask(cases.count_to_thirty())
    assert isinstance(answer.error, UpstreamTimeout)


@pytest.mark.parametrize(
    ("reads", "late", "streamed"),
    [(2, 9.0, True), (1, 0.0, False), (1, 0.1, None)],
)
def test_a_busy_machine_never_makes_a_stream_one_piece(
    reads: int, late: float, streamed: bool | None
) -> None:
    assert ProbeAnswer(reads=reads, late=late).is_streamed is streamed


async def test_lateness_is_what_a_sleep_took_too_long() -> None:
    clock = Clock()
    lags = iter((0.0, 0.0, 0.4, 0.0))

    async def sleep(seconds: float) -> None:
        lag = next(lags, None)
        if lag is None:
            raise asyncio.CancelledError
        clock.now += seconds + lag

    watch = LatenessWatch(clock, sleep)
    with pytest.raises(asyncio.CancelledError):
        await watch.run()
    assert watch.lateness() == pytest.approx(0.4)
    clock.now += 2
    assert watch.lateness() == pytest.approx(2 - 0.01)  # it has not run since


SEEN = ProbeResult("picture", ProbeOutcome.YES, "seen", 1, 90, 2, 0.5, {"images": True})

NO = ProbeResult("cache", ProbeOutcome.NO)

SAID = {"dialect": "gemini", "date": "2026-11-22", "version": "0.3"}


def test_a_report_is_read_back_without_its_facts() -> None:
    report = write_report([SEEN, NO], **SAID)
    assert orjson.loads(orjson.dumps(report)) == report
    first, second = read_results(report)
    assert (first.case, first.outcome, first.detail) == ("picture", "yes", "seen")
    assert (first.requests, first.input_tokens, first.output_tokens) == (1, 90, 2)
    assert (first.seconds, first.facts) == (0.5, {})
    assert second == NO


@given(VALUES, VALUES)
def test_a_report_may_be_any_json(value: Any, case: Any) -> None:
    reports = [{"cases": value}, {"cases": [case, {"case": "a", "outcome": value}]}]
    for report in reports:
        for result in read_results(report):
            assert isinstance(result.detail, str)
            assert result.requests >= 0


@pytest.mark.parametrize(
    ("source", "dialect"),
    [(FactSource.REFUSAL, "openai_responses"), (FactSource.FAMILY, "")],
)
def test_the_dialect_that_a_refusal_led_to_is_a_fact(
    source: FactSource, dialect: str
) -> None:
    known = SourcedFacts(
        ModelFacts("m", dialect="openai_responses"), {"dialect": source}
    )
    assert facts_of("m", [NO], known) == ModelFacts("m", dialect=dialect)


def test_an_exported_profile_has_no_names_and_addresses() -> None:
    report = {**write_report([SEEN], **SAID), "address": "https://me:sk-1@host"}
    profile = Profile(ModelFacts("m", images=True), report)
    exported = export_profile("openai", "m", profile)
    assert exported == {
        "vendor": "openai",
        "model": "m",
        "date": "2026-11-22",
        "byok": "0.3",
        "dialect": "gemini",
        "facts": {"images": True},
        "cases": [
            {
                "case": "picture",
                "outcome": ProbeOutcome.YES,
                "detail": "seen",
                "requests": 1,
                "input_tokens": 90,
                "output_tokens": 2,
                "seconds": 0.5,
            }
        ],
    }
