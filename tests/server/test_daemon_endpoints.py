"""What commands ask of the running daemon, and settings that change under it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from byok.core.errors import BadRequest
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from byok.search.vectors.types import EmbeddingEstimate, EmbeddingState, EmbeddingStatus
from byok.server.daemon_endpoints import ModelLists, embed_handlers
from byok.settings import Settings
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

KEY = "sk-of-the-daemon-0123456789"


async def use(editor: Editor, settings: dict[str, Any]) -> None:
    """Let the daemon use other settings, as a changed file does."""
    await editor.daemon.use(Settings(**settings))


async def test_the_daemon_tells_who_answers_and_why() -> None:
    async with running(upstream="demo") as editor:
        told = (await editor.post("/byok/daemon")).json
    assert (told["upstream"], told["model"]) == ("demo", "byok:demo:echo")
    assert told["reason"] == "chosen by --upstream"
    file = str(find_paths().config)
    assert told["settings"] == {"file": file, "error": "", "restart": []}


async def test_the_daemon_tells_how_many_requests_its_journal_lost() -> None:
    find_paths().journal.mkdir(parents=True)  # so it can be no file
    async with running(upstream="demo") as editor:
        told = (await editor.post("/byok/daemon")).json["features"]
        assert "journal" not in told
        for _ in range(2):
            await editor.chat("Hi.")
        async with asyncio.timeout(PATIENCE):
            while told.get("journal", [{}])[0].get("values") != {"count": 2}:
                await asyncio.sleep(0.01)
                told = (await editor.post("/byok/daemon")).json["features"]


async def test_daemon_status_shows_settings_without_secrets(
    fake: FakeUpstream,
) -> None:
    settings = settings_for(fake.url, headers={"X-Team": KEY})
    async with running(settings) as editor:
        reply = await editor.post("/byok/settings")
        assert reply.json["upstreams"]["fake"]["timeout"] == 60
        assert KEY.encode() not in reply.raw
        await use(editor, settings_for(fake.url, timeout=7))
        reply = await editor.post("/byok/settings")
        assert reply.json["upstreams"]["fake"]["timeout"] == 7


async def test_keys_are_those_that_the_daemon_finds(fake: FakeUpstream) -> None:
    environ = {"BYOK_KEY_FAKE": KEY, "GROQ_API_KEY": KEY}
    async with running(settings_for(fake.url), environ=environ) as editor:
        reply = await editor.post("/byok/keys")
        tried = (await editor.post("/byok/keys/test", {"upstream": "fake"})).json
        unknown = await editor.post("/byok/keys/test", {"upstream": "nobody"})
    rows = {row["upstream"]: row["source"] for row in reply.json["keys"]}
    assert rows == {"fake": "BYOK_KEY_FAKE", "groq": "GROQ_API_KEY"}
    assert KEY.encode() not in reply.raw
    origin = fake.url.removesuffix("/v1")
    assert tried == {"origin": origin, "models": 1, "with_key": True}
    assert fake.list_headers[-1]["Authorization"] == f"Bearer {KEY}"
    assert unknown.json["error"]["code"] == "no_upstream"


@pytest.mark.parametrize("path", ["/chat-stream", "/v1/chat/completions"])
async def test_daemon_reload_keeps_open_streams_on_their_upstream(
    fake: FakeUpstream, path: str
) -> None:
    """New requests are answered by the new settings meanwhile."""
    fake.play(Script([delta(content="One"), delta(content=" old"), 2.0, *answer(".")]))
    async with FakeUpstream() as other:
        other.play(answer("New."))
        async with running(settings_for(fake.url, model="m")) as editor:
            body: dict[str, Any] = {"message": "x"}
            if path.startswith("/v1"):
                body = {"model": "m", "stream": True, "messages": []}
            asking = asyncio.ensure_future(editor.post(path, body))
            await asyncio.wait_for(fake.reached.wait(), PATIENCE)
            await use(editor, settings_for(other.url, model="n"))
            assert (await editor.chat("Who?")).text == "New."
            old = await asyncio.wait_for(asking, PATIENCE)
    assert other.requests[0]["model"] == "n"
    assert told(old) == "One old."


def told(reply: Answer) -> str:
    """Return the text of either kind of stream."""
    assert reply.status == 200
    if not reply.raw.startswith(b"data:"):
        return reply.text
    events = [line[6:] for line in reply.raw.decode().splitlines() if line]
    deltas = [json.loads(e)["choices"][0]["delta"] for e in events if e != "[DONE]"]
    return "".join(delta.get("content", "") for delta in deltas)


async def test_daemon_reload_keeps_the_order_of_conversation_turns(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One"), 0.5, *answer(".")]), answer("Two."))
    settings = settings_for(fake.url, model="m")
    async with running(settings) as editor:
        history = [{"request_message": "0", "response_text": "Zero."}]
        asking = editor.chat("A", conversation_id="c", chat_history=history)
        first = asyncio.ensure_future(asking)
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        await use(editor, settings_for(fake.url, model="m", timeout=9))
        history = [*history, {"request_message": "A", "response_text": "One."}]
        second = editor.chat("B", conversation_id="c", chat_history=history)
        assert (await asyncio.wait_for(second, PATIENCE)).text == "Two."
        assert first.done()
        assert (await first).text == "One."


async def test_daemon_reload_answers_once_settings_and_keys_are_in_force(
    fake: FakeUpstream,
) -> None:
    environ = {"BYOK_KEY_FAKE": "first-key-of-all"}
    async with running(settings_for(fake.url), environ=environ) as editor:
        await editor.chat()
        environ["BYOK_KEY_FAKE"] = "second-key-of-all"
        reply = await editor.post("/byok/reload")
        await editor.chat()
    assert (reply.status, reply.json["restart"]) == (200, [])
    keys = [headers["Authorization"][7:] for headers in fake.headers]
    assert keys == ["first-key-of-all", "second-key-of-all"]


async def test_both_lists_have_the_same_models(fake: FakeUpstream) -> None:
    async with running(settings_for(fake.url, models=["one", "two"])) as editor:
        services = editor.services
        lists = ModelLists(services.catalog, services.router, services.settings)
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
        lists = ModelLists(services.catalog, services.router, services.settings)
        for_editor = await lists.for_editor({})
        assert (await lists.for_openai("fast"))["id"] == "byok:fast"
        for model in ("byok:fast", "fast", None):
            await editor.chat(model=model)
        body = {"model": "fast", "messages": []}
        await editor.post("/v1/chat/completions", body)
    assert for_editor["default_model"] == "byok:fake:two"
    assert "byok:fast" in [model["name"] for model in for_editor["models"]]
    assert [request["model"] for request in fake.requests] == ["two"] * 4


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
        "next_edit": "byok:fake:gpt-5.5",
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


class Control:
    """Notes what it was told, and counts seven of whatever it does."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    async def status(self) -> EmbeddingStatus:
        state = EmbeddingState.FILLING
        return EmbeddingStatus(state, "vendor", "vendor.example:443", "embed-1")

    async def estimate(self) -> EmbeddingEstimate:
        return EmbeddingEstimate("v", "h:1", "m", False, 10, 1500, None, False)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[int]]:
        async def act(*words: str) -> int:
            self.told.append((name, *words))
            return 7

        return act


@pytest.mark.parametrize(
    ("service", "body", "told", "counted"),
    [
        (Service.EMBED_STATUS, {}, [], {}),
        (
            Service.EMBED_ENABLE,
            {"host": "vendor.example:443", "model": "embed-1"},
            [("enable", "vendor.example:443", "embed-1")],
            {},
        ),
        (Service.EMBED_ENABLE, {}, [("enable", "", "")], {}),
        (Service.EMBED_DISABLE, {}, [("disable",)], {}),
        (Service.EMBED_PAUSE, {}, [("pause",)], {}),
        (Service.EMBED_RESUME, {}, [("resume",)], {}),
        (Service.EMBED_CLEAR, {}, [("clear",)], {"removed": 7}),
        (Service.EMBED_PUSH, {}, [("push",)], {"pushed": 7}),
        (Service.EMBED_PULL, {}, [("pull",)], {"pulled": 7}),
    ],
)
async def test_every_command_answers_with_the_status(
    service: Service,
    body: dict[str, Any],
    told: list[tuple[str, ...]],
    counted: dict[str, int],
) -> None:
    control: Any = Control()
    answer = await embed_handlers(control)[service](body)
    sent = orjson.loads(orjson.dumps(answer))
    assert control.told == told
    assert (sent["state"], sent["model"]) == ("filling", "embed-1")
    names = ("removed", "pushed", "pulled")
    assert {name: sent[name] for name in names if name in sent} == counted


@pytest.mark.parametrize(
    ("settings", "is_missing"),
    [
        ({"default": "byok:fake:nosuch"}, True),
        ({"default": "nosuch"}, True),
        ({"default": "fake-model"}, False),
        ({"aliases": {"a": "byok:fake:nosuch"}, "default": "a"}, True),
        ({}, False),
    ],
    ids=range(5),
)
async def test_a_default_that_its_upstream_does_not_list_is_said_at_the_start(
    fake: FakeUpstream,
    settings: dict[str, Any],
    is_missing: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running({**settings_for(fake.url), "routing": settings}) as editor:
        await editor.services.catalog.settle(PATIENCE)
        assert ("nosuch" in caplog.text) is is_missing
