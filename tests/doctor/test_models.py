"""Models that the settings name, and their windows."""

import pytest

from byok.doctor.models import check_model, check_window, model_uses
from byok.doctor.results import CannotCheck, CheckState
from tests.fakes.doctors import surroundings, upstream_box, write_settings
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.upstream import FakeUpstream, dead_url


async def test_each_use_of_a_model_is_checked(fake: FakeUpstream) -> None:
    write_settings(
        *("[routing]", 'aliases = { quick = "byok:box:fake-model" }'),
        *("[routing.models]", 'title = "byok:box:tiny"', 'edit = "quick"'),
        *upstream_box(fake.url),
    )
    async with surroundings() as around:
        uses = await model_uses(around)
        states = {use: (await check_model(around, use)).state for use in uses}
    assert uses[0] == "default"
    assert states == {
        "default": CheckState.OK,
        "edit": CheckState.OK,
        "quick": CheckState.OK,
        "title": CheckState.FAILURE,
    }


@pytest.mark.parametrize(
    ("chosen", "state", "said"),
    [
        ("coder", CheckState.OK, "coder of box"),
        ("gpt-9", CheckState.OK, "gpt-9 of box"),
        ("codr:latest", CheckState.FAILURE, "did you mean coder:latest?"),
        ("zzz", CheckState.FAILURE, "box has no model zzz"),
        ("own", CheckState.OK, "does not list it"),
    ],
)
async def test_a_chosen_model_is_compared_with_the_list(
    fake: FakeUpstream, chosen: str, state: CheckState, said: str
) -> None:
    fake.models = ["coder:latest", "gpt-9-2026-10-01"]
    wanted = ["[routing]", f'default = "byok:box:{chosen}"']
    write_settings(*wanted, *upstream_box(fake.url, 'models = ["own"]'))
    async with surroundings() as around:
        result = await check_model(around, "default")
    assert result.state is state
    assert said in result.found


async def test_a_server_cannot_make_the_comparison_slow(fake: FakeUpstream) -> None:
    fake.models = ["x" * 100_000, *(f"m{'x' * 99}{n}" for n in range(3000)), "zzzy"]
    write_settings(*upstream_box(fake.url, 'model = "zzz"'))
    async with surroundings() as around:
        result = await check_model(around, "default")
    assert "did you mean" not in result.found  # behind those that are compared


async def test_the_cure_names_the_key_of_the_settings(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url, 'model = "zzz"'))
    async with surroundings() as around:
        result = await check_model(around, "default")
    assert "correct model under [upstreams.box]" in result.cure


async def test_without_a_list_nothing_is_said_about_a_model() -> None:
    write_settings(*upstream_box(dead_url(), 'model = "m"'))
    async with surroundings() as around:
        result = await check_model(around, "default")
        with pytest.raises(CannotCheck, match="takes no connection"):
            await check_window(around, "box")
    assert result.state is CheckState.NOT_CHECKED


@pytest.mark.parametrize(
    ("window", "state", "said"),
    [
        (0, CheckState.WARNING, "unknown"),
        (8_000, CheckState.FAILURE, "too small"),
        (20_000, CheckState.WARNING, "too small"),
        (200_000, CheckState.OK, "200,000 tokens of fake-model, by the settings"),
    ],
)
async def test_a_window_must_suffice_for_an_agent(
    fake: FakeUpstream, window: int, state: CheckState, said: str
) -> None:
    lines = [
        "[upstreams.box]",
        f'base_url = "{fake.url}"',
        f"context_window = {window}",
    ]
    write_settings(*lines)
    async with surroundings() as around:
        result = await check_window(around, "box")
    assert result.state is state
    assert said in result.found
    assert bool(result.cure) is (state is not CheckState.OK)


async def test_a_window_that_byok_chooses_itself_is_well() -> None:
    async with OllamaServer() as server:
        server.loaded["coder:latest"] = 4096  # by another program
        write_settings("[upstreams.ollama]", f'base_url = "{server.url}"')
        async with surroundings() as around:
            result = await check_window(around, "ollama")
    assert result.state is CheckState.OK
    assert server.requests == []  # nothing was loaded for this
