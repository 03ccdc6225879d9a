"""Models on the page: what each can do, a probe of one, and newer facts."""

import asyncio
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.upstream.model_facts import Profiles
from tests.fakes.daemon import running, settings_for
from tests.fakes.dashboard import Page, signed_in
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import FakeUpstream, Script

M = "byok:fake:m"
HOSTILE = "<img src=x>\u202e" + "n" * 300


def settings(fake: FakeUpstream) -> dict[str, Any]:
    facts = {"m": {"tools": True, "price_input": 2, "price_output": 10}}
    models = ["m", "qwen2.5-coder:1.5b-base", HOSTILE]
    return settings_for(fake.url, models=models, facts=facts)


async def test_models_tell_what_they_can_do_and_whence_that_is_known(
    fake: FakeUpstream,
) -> None:
    async with running(settings(fake)) as editor:
        told = await (await signed_in(editor)).call("models")
    first, filling, hostile, *_ = told["models"]
    assert (first["id"], first["can"], first["probed"]) == (M, ["tools"], None)
    assert "chat" in first["used"]
    assert first["facts"]["price"] == {"input": 2, "output": 10}
    assert first["sources"]["price"] == "settings"
    assert "fill" in filling["can"]
    assert hostile["model"] == HOSTILE
    assert told["default"] == M


@pytest.mark.slow
async def test_a_probe_tells_its_price_first_and_what_it_found(
    fake: FakeUpstream,
) -> None:
    model, go_on = ProbedModel(), asyncio.Event()

    def hold(body: dict[str, Any]) -> Script:
        script = model.reply(body)
        return replace(script, pieces=[go_on, *script.pieces])

    fake.reply = hold
    async with running(settings(fake)) as editor:
        page = await signed_in(editor)
        asked = len(fake.requests)
        plan = await page.call("model-probe", {"model": M})
        assert len(fake.requests) == asked
        assert plan["dollars"] > 0
        assert plan["requests"] > 1
        probing = asyncio.ensure_future(
            page.call("model-probe", {"model": M, "write": True})
        )
        while len(fake.requests) == asked:
            await asyncio.sleep(0.01)
        second = await page.refused("model-probe", {"model": M, "write": True})
        go_on.set()
        found = await probing
        [row, *_] = (await page.call("models"))["models"]
    assert second[1] == "not_ready"
    assert {"answer", "tool"} <= {result["case"] for result in found["results"]}
    assert Profiles(find_paths().profiles).facts(f"fake@{fake.url}", "m").efforts
    assert row["probed"] == date.today().isoformat()


@pytest.mark.parametrize("model", ["", "m", "byok:gone:m", "../x", 7])
async def test_a_model_of_no_upstream_is_not_probed(page: Page, model: Any) -> None:
    for writes in (False, True):
        asked = {"model": model, "write": writes}
        assert await page.refused("model-probe", asked) == (422, "bad_field")


async def test_an_update_tells_what_it_fetches_and_may_fail(
    fake: FakeUpstream,
) -> None:
    network = {"network": {"proxy": "http://127.0.0.1:9"}}
    async with running({**settings(fake), **network}) as editor:
        page = await signed_in(editor)
        plan = await page.call("models-update")
        assert all(url.startswith("https://") for url in plan["lists"])
        refused = await page.refused("models-update", {"write": True})
    assert refused == (400, "config")
    assert not find_paths().known_models.exists()
