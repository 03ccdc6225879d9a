"""The official service fails: byok answers itself, and says so once."""

import asyncio
import json
import logging

import pytest

from byok.core.routing import EndpointGroup
from tests.fakes.clients import until_indexed
from tests.fakes.daemon import running
from tests.fakes.official import (
    CHAT,
    ENVIRON,
    HASTY,
    KEY,
    KEYS,
    NDJSON,
    FakeOfficial,
    between,
    told,
    whole,
)
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer

BODY = json.dumps(
    {"message": "Hello.", "selected_text": "a", "instruction": "b"}
).encode()


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 429, 500, 503])
@pytest.mark.case("F45")
async def test_official_refusal_is_answered_here_and_reported_once(
    official: FakeOfficial,
    fake: FakeUpstream,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    official.expect("/chat", BODY, whole(b'{"error": "words"}', status))
    async with between(official, fake, CHAT) as editor:
        for _ in range(3):
            assert (await editor.post("/chat", raw=BODY)).json["text"] == "Hi."
        assert len(told(caplog)) == 1
        assert f"it answered {status}" in told(caplog)[0]
        official.expect("/chat", BODY)
        assert (await editor.post("/chat", raw=BODY)).raw == b"{}"
        official.expect("/chat", BODY, whole(b"", status))
        assert (await editor.post("/chat", raw=BODY)).json["text"] == "Hi."
    assert len(told(caplog)) == 2
    assert "words" not in caplog.text


QUIET = (
    "/completion",
    "/agents/list-remote-tools",
    "/get-credit-info",
    "/client-metrics",
)


@pytest.mark.case("F45")
async def test_while_it_is_down_everything_works_here(
    official: FakeOfficial, fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    await official.down()
    fake.play(answer("Mine."))
    groups = {g.value: "official" for g in EndpointGroup}
    blobs = [{"blob_name": "n", "path": "x.py", "content": "def bake(): pass"}]
    async with between(official, fake, groups) as editor:
        models = await editor.post("/get-models")
        chat = await editor.chat("Hello.")
        unary = await editor.post("/chat", raw=BODY)
        edit = await editor.post("/edit", raw=BODY)
        sent = await editor.post("/batch-upload", {"blobs": blobs})
        await until_indexed(editor, ["n"])
        missing = await editor.post("/find-missing", {"mem_object_names": ["n", "o"]})
        question = {"information_request": "bake", "blobs": {"added_blobs": ["n"]}}
        found = await editor.post("/agents/codebase-retrieval", question)
        quiet = [await editor.post(path) for path in QUIET]
    assert models.json["default_model"] == "byok:fake:m"
    assert (chat.text, unary.json["text"], edit.json["text"]) == ("Mine.",) * 3
    assert sent.json == {"blob_names": ["n"]}
    assert missing.json["unknown_memory_names"] == ["o"]
    assert "def bake" in found.json["formatted_retrieval"]
    assert {got.status for got in quiet} == {200}
    lines = told(caplog)
    for group in EndpointGroup:
        assert sum(f"(group {group})" in line for line in lines) == 1
    assert len(lines) == len(EndpointGroup)
    assert "nothing answers at" in lines[0]


@pytest.mark.case("F45")
async def test_official_service_is_asked_again_once_it_is_up(
    official: FakeOfficial, fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    official.expect("/chat", BODY, whole(b'{"text": "Theirs."}'))
    async with between(official, fake, CHAT) as editor:
        await official.down()
        assert (await editor.post("/chat", raw=BODY)).json["text"] == "Hi."
        await official.up()
        assert (await editor.post("/chat", raw=BODY)).json["text"] == "Theirs."
    assert len(told(caplog)) == 1
    assert "the official service answers /chat (group chat) again" in caplog.text


@pytest.mark.case("F45")
async def test_official_service_that_is_silent_is_waited_for_once(
    official: FakeOfficial, fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    official.expect("/chat-stream", BODY, silent=True)
    official.expect("/completion", BODY, silent=True)
    groups = {"chat": "official", "completion": "official"}
    async with between(official, fake, groups, timing=HASTY) as editor:
        for _ in range(3):
            assert (await editor.post("/chat-stream", raw=BODY)).text == "Hi."
            assert (await editor.post("/completion", raw=BODY)).status == 200
    assert sorted(official.paths) == ["/chat-stream", "/completion"]
    assert len(told(caplog)) == 2


async def test_official_completion_that_is_slow_is_not_waited_for(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    official.expect("/completion", BODY, Script([b'{"text":', 60.0, b'"x"}']))
    groups = {"completion": "official"}
    async with between(official, fake, groups, timing=HASTY) as editor:
        got = await asyncio.wait_for(editor.post("/completion", raw=BODY), PATIENCE)
    assert "completion_items" in got.json


@pytest.mark.parametrize("before_head", [True, False])
@pytest.mark.case("F45")
async def test_official_answer_that_breaks_before_anything_came_is_given_here(
    official: FakeOfficial, fake: FakeUpstream, before_head: bool
) -> None:
    broken = Script([], headers=NDJSON, end="reset", before_head=before_head)
    official.expect("/chat-stream", BODY, broken)
    async with between(official, fake, CHAT) as editor:
        assert (await editor.post("/chat-stream", raw=BODY)).text == "Hi."


@pytest.mark.case("F45")
async def test_official_half_answer_in_one_piece_is_given_here(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    official.expect("/chat", BODY, Script([b'{"text": '], end="reset"))
    async with between(official, fake, CHAT) as editor:
        assert (await editor.post("/chat", raw=BODY)).json["text"] == "Hi."


async def test_official_without_a_token_gets_no_request_and_that_is_reported_once(
    official: FakeOfficial, fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    groups = {"chat": "official", "account": "official"}
    async with between(official, fake, groups, environ={"K": KEY}) as editor:
        for _ in range(2):
            assert (await editor.post("/chat", raw=BODY)).json["text"] == "Hi."
            assert (await editor.post("/get-credit-info")).status == 200
    assert official.raw == []
    assert len(told(caplog)) == 1
    assert told(caplog)[0].endswith("Run: byok keys set official")


async def test_official_without_a_url_is_answered_here(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"routing": {"official": {g.value: "official" for g in EndpointGroup}}}
    async with running(settings, upstream="demo", environ=ENVIRON) as editor:
        assert (await editor.post("/chat", raw=BODY)).status == 200
        assert (await editor.post("/get-models")).status == 200
    assert told(caplog) == [
        "[routing.official] has no base_url: byok answers every group"
    ]


async def test_official_changed_token_is_tried_at_once(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    environ = dict(KEYS)
    official.expect("/chat", BODY, whole(b'{"text": "Theirs."}'))
    async with between(official, fake, CHAT, environ=environ) as editor:
        await editor.post("/chat", raw=BODY)
        official.token = environ["BYOK_KEY_OFFICIAL"] = "another-token-0123456789"
        editor.services.forget_keys()
        got = await editor.post("/chat", raw=BODY)
    assert got.json == {"text": "Theirs."}


async def test_official_body_that_cannot_be_read_is_refused_here(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    async with between(official, fake, CHAT) as editor:
        assert (await editor.post("/chat", raw=b'{"message')).status == 400
        wrong = {"Authorization": "Bearer wrong"}
        got = await editor.post("/chat", raw=BODY, headers=wrong)
        assert got.status == 401
    assert official.raw == []


@pytest.mark.filterwarnings("ignore:Sending a large body")  # by the test's client
async def test_official_large_body_goes_through_and_is_read_again_here(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    body = json.dumps({"message": "x" * 3 * 2**20}).encode()
    official.expect("/chat", body, whole(b'{"text": "Theirs."}'))
    async with between(official, fake, CHAT) as editor:
        assert (await editor.post("/chat", raw=body)).json == {"text": "Theirs."}
        official.expect("/chat", body, whole(b"", 500))
        assert (await editor.post("/chat", raw=body)).json["text"] == "Hi."
    [request] = fake.requests
    assert len(json.dumps(request)) > 3 * 2**20
