"""Lists of models: what is known at once, for editors and for OpenAI's clients."""

import pytest

from byok.core.errors import BadRequest
from byok.server.daemon_endpoints import ModelLists
from tests.fakes.daemon import running, settings_for
from tests.fakes.upstream import FakeUpstream


async def test_both_lists_have_the_same_models(fake: FakeUpstream) -> None:
    async with running(settings_for(fake.url, models=["one", "two"])) as editor:
        services = editor.services
        settings = services.settings.completion
        lists = ModelLists(services.catalog, services.router, settings)
        for_editor = await lists.for_editor({})
        for_openai = await lists.for_openai("")
        one = await lists.for_openai("two")
        with pytest.raises(BadRequest):
            await lists.for_openai("three")
    names = [model["name"] for model in for_editor["models"]]
    assert names[:2] == ["byok:fake:one", "byok:fake:two"]
    assert [model["id"] for model in for_openai["data"]] == names
    assert one["id"] == "byok:fake:two"


async def test_an_alias_is_listed_and_can_be_asked_everywhere(
    fake: FakeUpstream,
) -> None:
    settings = settings_for(fake.url, models=["one"])
    settings["routing"] = {"default": "fast", "aliases": {"fast": "byok:fake:two"}}
    async with running(settings) as editor:
        services = editor.services
        lists = ModelLists(
            services.catalog, services.router, services.settings.completion
        )
        for_editor = await lists.for_editor({})
        assert (await lists.for_openai("fast"))["id"] == "byok:fast"
        for model in ("byok:fast", "fast", None):
            await editor.chat(model=model)
        body = {"model": "fast", "messages": []}
        await editor.post("/v1/chat/completions", body)
    assert for_editor["default_model"] == "byok:fake:two"
    assert "byok:fast" in [model["name"] for model in for_editor["models"]]
    assert [request["model"] for request in fake.requests] == ["two"] * 4
