"""What `byok models` is told: facts with their sources, and what models are for."""

from tests.fakes.daemon import running
from tests.fakes.upstream import FakeUpstream


async def test_facts_come_with_their_sources_and_jobs_with_their_models(
    fake: FakeUpstream,
) -> None:
    fake.models = ["gpt-5.4-mini", "gpt-5.5", "gpt-4"]
    section = {
        "type": "openai",
        "base_url": fake.url,
        "facts": {"gpt-5.5": {"window": 300_000}},
    }
    given = {
        "upstreams": {"fake": section},
        "routing": {"models": {"title": "byok:fake:gpt-4"}},
    }
    async with running(given) as editor:
        told = (await editor.post("/byok/catalog")).json
    assert told["default"] == "byok:fake:gpt-5.5"
    assert told["jobs"] == {
        "commit": "byok:fake:gpt-5.4-mini",
        "title": "byok:fake:gpt-4",
        "completion": "byok:fake:gpt-5.4-mini",
    }
    first = told["models"][0]
    assert first["model"] == "gpt-5.5"
    assert (first["facts"]["window"], first["sources"]["window"]) == (
        300_000,
        "settings",
    )
    assert first["sources"]["price"] == "table"
    assert first["sources"]["sampling"] == "model family"
    assert told["table"]["source"].startswith("LiteLLM")


async def test_a_default_that_the_user_chose_does_every_job(fake: FakeUpstream) -> None:
    fake.models = ["gpt-5.4-mini", "gpt-5.5"]
    section = {"type": "openai", "base_url": fake.url}
    given = {"upstreams": {"fake": section}, "routing": {"default": "gpt-5.5"}}
    async with running(given) as editor:
        told = (await editor.post("/byok/catalog")).json
    assert set(told["jobs"].values()) == {"byok:fake:gpt-5.5"}
