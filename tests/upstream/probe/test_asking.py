"""What is noted of an answer: its parts, refusals, tokens and times."""

import asyncio

import pytest

from byok.core.chat import TextPart, ThinkingPart, ToolCall
from byok.core.errors import RefusalKind, UpstreamRefused, UpstreamTimeout
from byok.core.events import Usage
from byok.dialects.registry import DIALECTS
from byok.upstream.client import HttpUpstream
from byok.upstream.probe import questions
from byok.upstream.probe.asking import LatenessWatch, ProbeAnswer, Prober
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, Key
from tests.fakes.clock import Clock
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import FakeUpstream, Script, refusal


async def test_an_answer_is_noted_with_its_parts(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel().serve(fake)
    answer = await prober.ask(questions.count_to_thirty())
    thought, said = answer.parts
    assert isinstance(thought, ThinkingPart)
    assert (thought.text, said) == ("Hm.", TextPart("1 2 3"))
    assert (answer.text, answer.thinks, answer.requests) == ("1 2 3", True, 1)
    assert answer.usage is not None
    assert (answer.error, answer.refusal, answer.refusals) == (None, None, [])
    assert answer.reads
    assert 0 < answer.first < answer.seconds
    assert prober.dialect == "openai_chat"


async def test_a_call_is_noted_whole(fake: FakeUpstream, prober: Prober) -> None:
    ProbedModel(reasons=False).serve(fake)
    answer = await prober.ask(questions.call_tool())
    assert answer.calls == [ToolCall("c0", "get_weather", '{"city": "Paris"}')]
    assert not answer.thinks


async def test_a_refusal_that_byok_found_a_way_around_is_noted(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel(sampling=False).serve(fake)
    chat = questions.count_to_thirty(temperature=0.3)
    answer = await prober.ask(chat, sampling=None)
    assert (answer.text, answer.error) == ("1 2 3", None)
    assert answer.refusal is not None
    assert answer.requests == 2
    answer = await prober.ask(questions.count_to_thirty())
    assert answer.refusal is None


async def test_what_is_assumed_counts_for_one_question(
    fake: FakeUpstream, prober: Prober
) -> None:
    model = ProbedModel()
    model.serve(fake)
    chat = questions.count_to_thirty(temperature=0.3)
    await prober.ask(chat, sampling=False)
    await prober.ask(chat)
    assert ["temperature" in body for body in model.bodies] == [False, True]


async def test_a_failure_is_noted(fake: FakeUpstream, prober: Prober) -> None:
    fake.play(refusal(401))
    answer = await prober.ask(questions.count_to_thirty())
    assert answer.error is answer.refusal is not None
    assert answer.parts == ()


async def test_an_answer_without_end_is_given_up(fake: FakeUpstream) -> None:
    fake.play(Script([], end="hang"))
    transports = Transports()
    api = Api(DIALECTS["openai_chat"]("openai_compatible"), fake.url)
    spec = UpstreamSpec("fake", (api,), timeouts=PATIENT)
    prober = Prober(HttpUpstream(spec, transports, Key()), "m", seconds=0.05)
    answer = await prober.ask(questions.count_to_thirty())
    assert isinstance(answer.error, UpstreamTimeout)
    await transports.close()


def test_an_overload_that_passed_is_no_refusal() -> None:
    busy = UpstreamRefused("No.", kind=RefusalKind.OVERLOADED, retryable=True)
    assert ProbeAnswer(refusals=[busy]).refusal is None


def test_reasoning_may_only_be_counted() -> None:
    assert ProbeAnswer(usage=Usage(reasoning_tokens=5)).thinks
    assert not ProbeAnswer(usage=Usage(5, 5)).thinks


async def test_ways_around_refusals_are_kept_from_the_first_question_only(
    fake: FakeUpstream, prober: Prober
) -> None:
    ProbedModel(sampling=False).serve(fake)
    chat = questions.count_to_thirty(temperature=0.3)
    assert (await prober.ask(chat)).refusal
    assert (await prober.ask(chat)).refusal
    assert (await prober.ask_first(chat)).refusal
    assert (await prober.ask(chat)).refusal is None


def test_a_busy_machine_never_makes_a_stream_one_piece() -> None:
    wrong: list[str] = []
    for reads, late, streamed in (
        (2, 0.0, True),
        (2, 9.0, True),
        (1, 0.0, False),
        (1, 0.1, None),
    ):
        answer = ProbeAnswer(reads=reads, late=late)
        if answer.is_streamed is not streamed:
            wrong.append(f"{answer}: {answer.is_streamed}")
    assert not wrong


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
