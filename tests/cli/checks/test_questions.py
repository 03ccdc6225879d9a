"""Questions to models: only where they are wanted, and what their answers show."""

import contextlib
from dataclasses import replace

import pytest

from byok.cli.checks.results import CannotCheck, CheckState
from byok.cli.checks.upstream_checks import (
    asked_upstreams,
    check_chat,
    check_streaming,
    check_tool_call,
)
from tests.fakes.doctors import surroundings, upstream_box, write_settings
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import DONE, FakeUpstream, Script, delta, refusal

CHECKS = (check_chat, check_streaming, check_tool_call)


@pytest.fixture(autouse=True)
def _settings(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url, 'model = "m"'))


async def test_nothing_is_asked_unless_it_is_wanted(fake: FakeUpstream) -> None:
    async with surroundings() as around:
        results = [await check(around, "box") for check in CHECKS]
        assert await asked_upstreams(around) == ("",)  # one row, whatever there is
    assert {result.state for result in results} == {CheckState.NOT_CHECKED}
    assert {result.cure for result in results} == {"byok doctor --ask-models"}
    assert fake.requests == []


async def test_a_model_that_does_all_takes_two_requests(fake: FakeUpstream) -> None:
    ProbedModel().serve(fake)
    async with surroundings(asks_models=True) as around:
        assert await asked_upstreams(around) == ["box"]
        results = [await check_chat(around, "box")]
        with contextlib.suppress(CannotCheck):  # on a machine that is too busy to tell
            results.append(await check_streaming(around, "box"))
        results.append(await check_tool_call(around, "box"))
    assert {result.state for result in results} == {CheckState.OK}
    assert len(fake.requests) == 2


async def test_an_answer_in_one_piece_is_a_warning(fake: FakeUpstream) -> None:
    fake.play([b"".join([delta(content="1 2 3"), delta(finish="stop"), DONE])])
    async with surroundings(asks_models=True) as around:
        assert (await check_chat(around, "box")).state is CheckState.OK
        with contextlib.suppress(CannotCheck):  # on a machine that is too busy to tell
            result = await check_streaming(around, "box")
            assert result.state is CheckState.WARNING
            assert "proxy" in result.cure


async def test_a_refusal_fails_and_the_rest_is_not_asked(fake: FakeUpstream) -> None:
    fake.play(refusal(404, "model m not found"))
    async with surroundings(asks_models=True) as around:
        result = await check_chat(around, "box")
        for check in CHECKS[1:]:
            with pytest.raises(CannotCheck, match="no answer"):
                await check(around, "box")
    assert result.state is CheckState.FAILURE
    assert result.cure


async def test_an_empty_answer_fails(fake: FakeUpstream) -> None:
    fake.play(Script([delta(content=" "), delta(finish="stop"), DONE]))
    async with surroundings(asks_models=True) as around:
        assert (await check_chat(around, "box")).state is CheckState.FAILURE


@pytest.mark.parametrize(
    ("model", "state"),
    [
        (replace(ProbedModel(), calls="never"), CheckState.WARNING),
        (replace(ProbedModel(), tools=False), CheckState.FAILURE),
        (replace(ProbedModel(), calls="if it must"), CheckState.OK),
    ],
    ids=["never", "refused", "if it must"],
)
async def test_a_model_without_tool_calls_is_named(
    fake: FakeUpstream, model: ProbedModel, state: CheckState
) -> None:
    model.serve(fake)
    async with surroundings(asks_models=True) as around:
        result = await check_tool_call(around, "box")
    assert result.state is state
