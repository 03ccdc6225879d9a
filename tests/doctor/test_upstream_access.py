"""Upstreams as checks see them: keys and lists are looked up once, clocks noted."""

from email.utils import formatdate

import pytest

from byok.doctor.results import CannotCheck
from byok.doctor.surroundings import Machine
from byok.doctor.upstream_access import (
    NotedLadder,
    default_id,
    get_transports,
    list_models,
    model_of,
    open_upstream,
)
from byok.errors import KeyMissing
from byok.keys import KeyWanted
from tests.fakes.doctors import surroundings, upstream_box, write_settings
from tests.fakes.upstream import FakeUpstream, dead_url

URL = "https://models.example/v1"


async def test_a_key_is_looked_up_once() -> None:
    environ = {"BYOK_KEY_BOX": "first-0123456789"}
    async with surroundings(environ=environ) as around:
        ladder = NotedLadder(around)
        wanted = KeyWanted("box", URL)
        assert ladder.find(wanted).value == "first-0123456789"
        environ.clear()
        assert ladder.find(wanted).value == "first-0123456789"
        assert ladder.seconds[wanted] >= 0
        missing = KeyWanted("other", URL)
        for _ in range(2):
            with pytest.raises(KeyMissing):
                ladder.find(missing)


async def test_a_list_is_asked_for_once_and_the_servers_clock_is_noted(
    fake: FakeUpstream,
) -> None:
    write_settings(*upstream_box(fake.url))
    async with surroundings(Machine(clock=lambda: 1_000_000.0)) as around:
        for _ in range(2):
            assert await list_models(around, "box") == ["fake-model"]
        [skew] = (await get_transports(around)).skews.values()
    assert len(fake.list_headers) == 1
    assert skew > 10**8  # the server says what time it is now


async def test_dates_of_caches_and_nonsense_are_no_clock() -> None:
    import httpx

    async with surroundings() as around:
        transports = await get_transports(around)
        for headers in (
            {"date": formatdate(0, usegmt=True), "age": "86400"},
            {"date": "yesterday"},
            {"date": "Thu, 01 Jan 1970 00:00:00 -0000"},
            {},
        ):
            transports._note(httpx.Response(200, headers=headers), "host")
        assert transports.skews == {}


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        ([], "fake-model"),
        (["[routing]", 'default = "byok:box:m:7b"'], "m:7b"),
        (["[routing]", 'default = "m"'], "m"),
        (["[routing]", 'default = "fast"', 'aliases = {fast = "byok:box:m"}'], "m"),
        (["[routing]", 'default = "byok:other:m"'], "fake-model"),
    ],
    ids=str,
)
async def test_the_model_that_is_looked_at_is_the_default_of_its_upstream(
    fake: FakeUpstream, lines: list[str], model: str
) -> None:
    other = ["[upstreams.other]", f'base_url = "{dead_url()}"']
    write_settings(*lines, *upstream_box(fake.url), *other)
    async with surroundings() as around:
        assert await model_of(around, "box") == model


async def test_the_default_is_that_of_the_settings_without_a_daemon() -> None:
    write_settings("[routing]", 'default = "byok:ollama:m"', "[upstreams.ollama]")
    async with surroundings() as around:
        assert await default_id(around) == "byok:ollama:m"


async def test_no_model_is_known_of_an_upstream_that_is_down() -> None:
    write_settings(*upstream_box(dead_url()))
    async with surroundings() as around:
        with pytest.raises(CannotCheck, match="no connection"):
            await model_of(around, "box")


async def test_values_of_headers_are_secrets(fake: FakeUpstream) -> None:
    headers = 'headers = { X-Extra = "very-secret-value" }'
    write_settings(*upstream_box(fake.url, headers))
    async with surroundings() as around:
        await open_upstream(around, "box")
        assert "very-secret-value" not in around.redactor("very-secret-value")
