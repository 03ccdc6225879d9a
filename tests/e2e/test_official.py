"""The official service beside byok: what goes there, what comes back, what never."""

import asyncio
import json
import logging
from typing import Any

import aiohttp
import pytest

from byok.core.routing import EndpointGroup
from byok.protocols.augment.endpoints import ENDPOINTS
from tests.fakes.daemon import running
from tests.fakes.official import (
    CHAT,
    KEY,
    KEYS,
    NDJSON,
    TOKEN,
    FakeOfficial,
    between,
    whole,
)
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script
from tests.fakes.values import forms

ODD = b' {"message" : "H\xc3\xa9llo", "n": 1180591620717411303424, "x":1.0} '
LINES = [b'{"text":"One ","nodes":[]}\n', b'{"text":"two.",', b'"stop_reason":1}\n']


# --- who answers a group ---

UNARY = {
    EndpointGroup.CONTEXT: "/find-missing",
    EndpointGroup.COMPLETION: "/completion",
    EndpointGroup.EDIT: "/edit",
    EndpointGroup.CHAT: "/chat",
    EndpointGroup.AGENTS: "/agents/list-remote-tools",
    EndpointGroup.ACCOUNT: "/get-credit-info",
    EndpointGroup.TELEMETRY: "/client-metrics",
}
TELEMETRY = [r.path for r in ENDPOINTS if r.group is EndpointGroup.TELEMETRY]
LOCAL: dict[EndpointGroup, dict[str, Any]] = {
    EndpointGroup.CONTEXT: {"unknown_memory_names": []},
    EndpointGroup.COMPLETION: {"checkpoint_not_found": False},
    EndpointGroup.EDIT: {"text": "Hi."},
    EndpointGroup.CHAT: {"text": "Hi.", "stop_reason": 1},
    EndpointGroup.AGENTS: {"tools": []},
    EndpointGroup.ACCOUNT: {"is_credit_balance_low": False},
    EndpointGroup.TELEMETRY: {},
}
BODY = json.dumps(
    {"message": "Hello.", "selected_text": "a", "instruction": "b", "prefix": "c"}
).encode()


@pytest.mark.parametrize("group", UNARY)
async def test_an_official_group_goes_through_byte_for_byte(
    official: FakeOfficial, fake: FakeUpstream, group: EndpointGroup
) -> None:
    path, reply = UNARY[group], b' {"n": 1180591620717411303424,\n"x":1.0}'
    official.expect(path, ODD, whole(reply, 201, Extra="not passed on"))
    async with between(official, fake, {group.value: "official"}) as editor:
        got = await editor.post(f"/some/base/{path}?q=1", raw=ODD)
    assert (got.status, got.raw) == (201, reply)
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["Server"] == "byok"
    assert "Extra" not in got.headers
    assert official.paths == [path]
    assert fake.requests == []


@pytest.mark.parametrize("path", ["/prompt-enhancer", "/chat-stream", "/chat"])
@pytest.mark.parametrize("elsewhere", ["off", "local"])
async def test_official_place_of_one_group_says_nothing_of_anothers(
    official: FakeOfficial, fake: FakeUpstream, path: str, elsewhere: str
) -> None:
    others = {g.value: elsewhere for g in UNARY if g is not EndpointGroup.CHAT}
    official.expect(path, BODY, whole(b'{"text": "Theirs."}\n'))
    async with between(official, fake, {**others, **CHAT}) as editor:
        got = await editor.post(path, raw=BODY)
    assert got.raw == b'{"text": "Theirs."}\n'
    assert fake.requests == []


OFF: dict[EndpointGroup, dict[str, Any]] = {
    **LOCAL,
    EndpointGroup.COMPLETION: {"completion_items": []},
    EndpointGroup.CONTEXT: {
        "unknown_memory_names": [],
        "unknown_blob_names": [],
        "nonindexed_blob_names": [],
    },
}


QUIET = [g for g in UNARY if g not in (EndpointGroup.EDIT, EndpointGroup.CHAT)]


@pytest.mark.parametrize(
    ("place", "group", "replies"),
    [
        *(("local", group, LOCAL) for group in UNARY),
        *(("off", group, OFF) for group in QUIET),
    ],
)
@pytest.mark.case("B120")
async def test_official_group_that_is_local_or_off_is_answered_here(
    official: FakeOfficial,
    fake: FakeUpstream,
    place: str,
    group: EndpointGroup,
    replies: dict[EndpointGroup, dict[str, Any]],
) -> None:
    async with between(official, fake, {group.value: place}) as editor:
        got = await editor.post(UNARY[group], raw=BODY)
    assert got.status == 200
    assert got.json.items() >= replies[group].items()
    assert official.raw == []
    assert place == "local" or fake.requests == []


@pytest.mark.parametrize("group", [EndpointGroup.EDIT, EndpointGroup.CHAT])
async def test_official_model_that_is_off_is_an_error(
    official: FakeOfficial, fake: FakeUpstream, group: EndpointGroup
) -> None:
    async with between(official, fake, {group.value: "off"}) as editor:
        got = await editor.post(UNARY[group], raw=BODY)
    assert got.status == 422
    assert got.json["error"]["code"] == "switched_off"
    assert f"The endpoint group {group} is disabled." in got.json["message"]
    assert fake.requests == []


async def test_official_chat_stream_that_is_off_says_so_in_one_line(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    async with between(official, fake, {"chat": "off"}) as editor:
        got = await editor.chat("Hello.")
    assert got.status == 200
    assert [line["text"] for line in got.lines if line["text"]] == [
        "\n[byok] The endpoint group chat is disabled. "
        "See the setting chat in [routing.official]."
    ]
    assert got.last["error"]["code"] == "switched_off"
    assert got.last["stop_reason"] == 1
    assert fake.requests == []


async def test_official_uploads_to_a_group_that_is_off_are_accepted_and_forgotten(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    blobs = [{"blob_name": "a" * 64, "path": "x.py", "content": "x = 1"}]
    async with between(official, fake, {"context": "off"}) as editor:
        sent = await editor.post("/batch-upload", {"blobs": blobs})
        made = await editor.post("/checkpoint-blobs", {"blobs": {}})
        found = await editor.post("/agents/codebase-retrieval", {"query": "x"})
        status = await editor.post("/byok/index/status")
    assert sent.json == {"blob_names": ["a" * 64]}
    assert made.json == {"new_checkpoint_id": "off"}
    assert "is disabled" in found.json["formatted_retrieval"]
    assert status.json["totals"].get("blobs", 0) == 0


@pytest.mark.parametrize("where", ["local", "official", "off"])
async def test_official_chat_reports_unknown_blobs_only_where_code_is_kept_here(
    official: FakeOfficial, fake: FakeUpstream, where: str
) -> None:
    blobs = {"added_blobs": ["a" * 64]}
    async with between(official, fake, {"context": where}) as editor:
        got = await editor.chat("Hello.", blobs=blobs)
    told = [name for line in got.lines for name in line["unknown_blob_names"]]
    assert told == (["a" * 64] if where == "local" else [])
    assert official.raw == []


@pytest.mark.case("B120")
async def test_telemetry_stays_here_unless_its_own_group_is_official(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    groups = {
        g.value: "official" for g in EndpointGroup if g is not EndpointGroup.TELEMETRY
    }
    async with between(official, fake, groups) as editor:
        for path in TELEMETRY:
            got = await editor.post(path, raw=b'{"events": ["secret"]}')
            assert (got.status, got.json) == (200, {})
    assert official.raw == []


@pytest.mark.case("B119")
async def test_official_token_is_never_fetched_for_the_client(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    groups = {g.value: "official" for g in EndpointGroup}
    async with between(official, fake, groups) as editor:
        got = await editor.post("/token")
        unknown = await editor.post("/brand/new", raw=b'{"a": 1}')
    assert got.json["access_token"] == ""
    assert unknown.json == {}
    assert official.raw == []


# --- what goes along ---


@pytest.mark.case("B119")
async def test_official_request_has_only_what_the_service_needs(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    sent = {
        "X-Request-Id": "one",
        "X-Request-Session-Id": "two",
        "conversation-id": "three",
        "X-Mode": "sdk",
        "x-api-version": "2",
        "User-Agent": "Augment.vscode-augment/1.2.3 (linux; x64)",
    }
    more = {
        "Cookie": "a=b",
        "X-Api-Key": "local",
        "sentry-trace": "x",
        "baggage": "y",
        "Accept-Language": "de",
        "X-Forwarded-Host": "evil.example",
    }
    official.expect("/chat", ODD)
    async with between(official, fake, CHAT) as editor:
        await editor.post("/chat", raw=ODD, headers={**sent, **more})
    [headers] = official.headers
    assert {name: headers[name.lower()] for name in sent} == sent
    assert headers["accept-encoding"] == "identity"
    assert headers["content-length"] == str(len(ODD))


@pytest.mark.case("B119")
async def test_official_request_leaves_out_a_header_that_holds_a_secret(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    official.expect("/chat", ODD)
    async with between(official, fake, CHAT) as editor:
        mine = {"X-Request-Id": editor.token, "User-Agent": f"x {editor.token}"}
        await editor.post("/chat", raw=ODD, headers=mine)
        token = editor.token.encode()
    [headers] = official.headers
    assert "x-request-id" not in headers
    assert headers["user-agent"].startswith("byok/")
    assert token not in b"".join(official.raw)


@pytest.mark.case("B119")
async def test_official_request_has_no_secret_of_byok(
    official: FakeOfficial, fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bearer = f"Bearer {TOKEN}"
    replies: list[bytes] = []
    async with between(official, fake, CHAT) as editor:
        for status in (200, 401, 402, 429, 500):
            repeated = json.dumps({"error": bearer}).encode() if status > 200 else b""
            official.expect("/chat", BODY, whole(repeated or b"{}", status))
            replies.append((await editor.post("/chat", raw=BODY)).raw)
        fake.play(Script([b'{"error": "x"}'], 401))
        replies.append((await editor.post("/edit", raw=BODY)).raw)
        local = editor.token
    for form in forms(TOKEN):
        assert form not in b"".join(replies)
        assert form not in caplog.text.encode()
        assert form not in b"".join(fake.bodies) + repr(fake.headers).encode()
    for secret in (KEY, local):
        for form in forms(secret):
            assert form not in b"".join(official.raw)
            assert form not in caplog.text.encode()
    assert {h["Authorization"] for h in fake.headers} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.case("B62")
async def test_official_redirect_is_not_followed(
    official: FakeOfficial, fake: FakeUpstream, status: int
) -> None:
    async with FakeOfficial() as other:
        to = whole(b"", status, Location=f"{other.url}/chat")
        official.expect("/chat", BODY, to)
        async with between(official, fake, CHAT) as editor:
            got = await editor.post("/chat", raw=BODY)
        assert got.json["text"] == "Hi."
        assert other.raw == []


@pytest.mark.parametrize("base", ["/tenant-7", "/a/b/"])
async def test_official_service_may_live_below_a_path(
    fake: FakeUpstream, base: str
) -> None:
    async with FakeOfficial(base.rstrip("/")) as official:
        official.expect("/chat", BODY, whole(b'{"text": "Theirs."}'))
        official.base = base
        settings = official.settings(chat="official")
        official.base = base.rstrip("/")
        async with running(settings, upstream="demo", environ=KEYS) as editor:
            got = await editor.post("/chat", raw=BODY)
    assert got.json == {"text": "Theirs."}


@pytest.mark.parametrize(
    ("model", "upstream"),
    [
        ("byok:fake:m2", "m2"),
        ("claude-sonnet", ""),
        (None, ""),
    ],
)
@pytest.mark.case("B120")
async def test_official_model_of_an_upstream_stays_here(
    official: FakeOfficial, fake: FakeUpstream, model: str | None, upstream: str
) -> None:
    body = json.dumps({"message": "Hello.", "model": model}).encode()
    official.expect("/chat", body, whole(b'{"text": "Theirs."}'))
    async with between(official, fake, CHAT) as editor:
        got = await editor.post("/chat", raw=body)
    assert got.json["text"] == ("Hi." if upstream else "Theirs.")
    assert [r["model"] for r in fake.requests] == ([upstream] if upstream else [])
    assert len(official.paths) == (0 if upstream else 1)


@pytest.mark.case("B120")
async def test_official_model_of_an_upstream_that_is_gone_is_never_asked(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    body = json.dumps({"message": "Hello.", "model": "byok:gone:m2"}).encode()
    async with between(official, fake, CHAT) as editor:
        got = await editor.post("/chat", raw=body)
    assert got.json["error"]["code"] == "model_not_found"
    assert fake.requests == []
    assert official.paths == []


# --- streams ---


async def test_official_stream_arrives_in_pieces_and_whole(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    go_on = asyncio.Event()
    script = Script([LINES[0], go_on, *LINES[1:]], headers=NDJSON)
    official.expect("/chat-stream", ODD, script)
    async with (
        between(official, fake, CHAT) as editor,
        editor.stream("/chat-stream", raw=ODD) as response,
    ):
        first = await response.content.readany()
        go_on.set()
        rest = await response.content.read()
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/x-ndjson"
    assert first == LINES[0]
    assert first + rest == b"".join(LINES)


@pytest.mark.case("F45")
async def test_official_stream_that_breaks_has_no_end(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    official.expect(
        "/chat-stream", ODD, Script([LINES[0]], headers=NDJSON, end="reset")
    )
    async with (
        between(official, fake, CHAT) as editor,
        editor.stream("/chat-stream", raw=ODD) as response,
    ):
        assert await response.content.readany() == LINES[0]
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()
    assert fake.requests == [], "what was begun is not begun anew"


@pytest.mark.parametrize("path", ["/chat-stream", "/chat"])
@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.case("F15")
async def test_official_disconnect_reaches_the_service(
    official: FakeOfficial, fake: FakeUpstream, path: str, silent: bool
) -> None:
    script = Script([LINES[0]], headers=NDJSON, end="hang")
    official.expect(path, BODY, script, silent=silent)
    async with between(official, fake, CHAT) as editor:
        asking = asyncio.ensure_future(editor.post(path, raw=BODY))
        await asyncio.wait_for(official.reached.wait(), PATIENCE)
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.wait_for(official.hung_up.wait(), PATIENCE)
    assert fake.requests == []


async def test_official_stream_ends_when_the_daemon_stops(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    script = Script([LINES[0]], headers=NDJSON, end="hang")
    official.expect("/chat-stream", BODY, script)
    async with (
        between(official, fake, CHAT) as editor,
        editor.stream("/chat-stream", raw=BODY) as response,
    ):
        line = await asyncio.wait_for(response.content.readline(), PATIENCE)
        assert line == LINES[0]
        await asyncio.wait_for(editor.daemon.stop(), PATIENCE)
        await asyncio.wait_for(official.hung_up.wait(), PATIENCE)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


# --- byok's own callers ---


async def test_official_service_gets_none_of_byoks_own_requests(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    groups = {g.value: "official" for g in EndpointGroup}
    async with between(official, fake, groups) as editor:
        models = await editor.post("/byok/catalog")
        found = await editor.post("/byok/retrieval", {"query": "x"})
        official.expect("/get-credit-info", b"{}", whole(b"", 402))
        await editor.post("/get-credit-info")
        status = await editor.post("/byok/official")
    assert models.json["default"] == "byok:fake:m"
    assert found.json["formatted_retrieval"]
    assert status.json == {
        "base_url": official.url,
        "groups": groups,
        "troubles": {"account": "it answered 402. Its credit is used up."},
    }
