"""From row to answer: models, unknown paths, what is not served."""

import asyncio
import logging

import pytest

from tests.fakes.daemon import running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream


async def test_get_models_answers_at_once_although_the_upstream_is_slow(
    fake: FakeUpstream,
) -> None:
    fake.models_delay = 60
    settings = settings_for(fake.url, models=["by-hand", "also-by-hand"])
    async with running(settings) as editor:
        reply = await asyncio.wait_for(editor.post("/get-models"), PATIENCE)
    names = [model["name"] for model in reply.json["models"]]
    assert names == ["byok:fake:by-hand", "byok:fake:also-by-hand"]
    assert reply.json["default_model"] == "byok:fake:by-hand"


async def test_get_models_lists_configured_models_before_discovered_ones(
    fake: FakeUpstream,
) -> None:
    fake.models = ["found", "by-hand"]
    async with running(settings_for(fake.url, models=["by-hand"])) as editor:
        await editor.services.catalog.settle(5)
        reply = await editor.post("/get-models")
    names = [model["name"] for model in reply.json["models"]]
    assert names == ["byok:fake:by-hand", "byok:fake:found"]


async def test_unknown_endpoint_is_logged_once_without_its_query(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "byok.server.endpoints")
    async with running(upstream="demo") as editor:
        for _ in range(3):
            assert (await editor.post("/brand/new?q=MARK", {})).json == {}
        await editor.post("/other/new", {})
    told = [r.getMessage() for r in caplog.records if r.name == "byok.server.endpoints"]
    assert told == [
        "unknown path '/brand/new': replying with nothing",
        "unknown path '/other/new': replying with nothing",
    ]


async def test_endpoint_settings_switch_automatic_requests() -> None:
    completion = {"chat_input": True, "next_edit": True}
    async with running({"completion": completion}, upstream="demo") as editor:
        flags = (await editor.post("/get-models")).json["feature_flags"]
    assert flags["enable_chat_input_inline_completion"] is True
    assert flags["vscode_next_edit_min_version"] == "0.0.0"
