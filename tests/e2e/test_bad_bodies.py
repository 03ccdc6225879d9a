"""Broken, hostile and merely odd request bodies; the ids are those of the test plan."""

import asyncio
import json
import time
from typing import Any

import pytest

from tests.fakes.cases import case_param
from tests.fakes.daemon import Editor, check_alive, running, settings_for
from tests.fakes.patience import START
from tests.fakes.raw import nested, put, request
from tests.fakes.upstream import FakeUpstream, answer

BAD_JSON = (400, "bad_json")
NOT_AN_OBJECT = (422, "not_an_object")
TOO_DEEP = (422, "json_too_complex")
TOO_LARGE = (413, "body_too_large")


def said(fake: FakeUpstream) -> str:
    """Return the last words that went up."""
    return str(fake.requests[-1]["messages"][-1]["content"])


BAD = [
    case_param(b"{", BAD_JSON, id="B39-open"),
    case_param(b"{}{}", BAD_JSON, id="B39-two"),
    case_param(b"[]", NOT_AN_OBJECT, id="B39-array"),
    case_param(b'"x"', NOT_AN_OBJECT, id="B39-string"),
    case_param(b"null", NOT_AN_OBJECT, id="B39-null"),
    case_param(b"1", NOT_AN_OBJECT, id="B39-number"),
    case_param(b"\xef\xbb\xbf{}", BAD_JSON, id="B40-bom"),
    case_param('{"message":"a"}'.encode("utf-16"), BAD_JSON, id="B40-utf-16"),
    case_param(b'{"message":"\xff"}', BAD_JSON, id="B40-ff"),
    case_param(b'{"message":"\xc0\xaf"}', BAD_JSON, id="B40-overlong"),
    case_param(b'{"message":"a\x01b"}', BAD_JSON, id="B40-control"),
    case_param(b'{"message":"a","x":NaN}', BAD_JSON, id="B41-nan"),
    case_param(b'{"message":"a","x":Infinity}', BAD_JSON, id="B41-infinity"),
    case_param(b'{"message":"a","x":-Infinity}', BAD_JSON, id="B41-minus-infinity"),
    case_param(b'{"message":"a","x":1e999}', BAD_JSON, id="B41-1e999"),
    case_param(nested(129), TOO_DEEP, id="B43-129"),
    case_param(nested(1025), TOO_DEEP, id="B43-1025"),
    case_param(b"[" * 5_000_000, BAD_JSON, id="B43-brackets"),
    case_param(b'{"a":' * 400_000, TOO_DEEP, id="B43-objects"),
    case_param(b'{"nodes":[%s{}]}' % (b"{}," * 1_000_000), TOO_LARGE, id="B46-nodes"),
]


@pytest.mark.parametrize(("body", "expected"), BAD)
@pytest.mark.parametrize(
    "target", [b"/chat-stream", b"/completion", b"/chat-input-completion"]
)
async def test_body_that_is_unreadable_is_refused_in_words(
    fake: FakeUpstream,
    editor: Editor,
    target: bytes,
    body: bytes,
    expected: tuple[int, str],
) -> None:
    started = time.process_time()
    refused = await put(editor, request(body=body, target=target))
    assert time.process_time() - started < 10
    assert (refused.status, refused.code) == expected
    await check_alive(editor, fake)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        case_param(rb'{"message":"a\ud800b"}', "a\ufffdb", id="B42-message"),
        case_param(rb'{"message":"a\ud83d\ude00"}', "a\U0001f600", id="B42-pair"),
        case_param(
            b'{"nodes":[{"id":1,"type":0,"text_node":{"content":"x\\udc00"}}]}',
            "x\ufffd",
            id="B42-node",
        ),
        case_param(nested(128), "deep", id="B43-128"),
        case_param(b'{"message":"a","message":"b"}', "b", id="B44"),
        pytest.param(b'\r\n {"message":"a"}\n', "a", id="blank-space-around"),
    ],
)
async def test_body_that_is_odd_is_still_read(
    fake: FakeUpstream, editor: Editor, body: bytes, words: str
) -> None:
    reply = await put(editor, request(body=body))
    assert (reply.status, reply.json["text"]) == (200, "Hi.")
    assert said(fake) == words


@pytest.mark.parametrize("body", [b"", b"  \r\n"], ids=["B39-empty", "B39-blank"])
async def test_body_that_is_empty_is_an_empty_object(body: bytes) -> None:
    async with running(upstream="demo") as editor:
        for target in (
            b"/chat", b"/completion", b"/chat-input-completion", b"/find-missing",
            b"/record-user-events",
        ):  # fmt: skip
            assert (await put(editor, request(body=body, target=target))).status == 200


@pytest.mark.slow
@pytest.mark.case("B46")
async def test_b46_chat_body_may_have_64_mib_and_no_byte_more() -> None:
    filler = b" " * (64 * 2**20 - 2)
    async with running(upstream="demo") as editor:
        taken = await put(editor, request(body=b"{%s}" % filler), START)
        assert taken.status == 200
        head, end, _ = request(body=b"{%s }" % filler).partition(b"\r\n\r\n")
        refused = await put(editor, head + end)  # its length is enough to refuse it
        assert (refused.status, refused.code) == TOO_LARGE


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"api_base": "URL"}, id="api_base"),
        pytest.param({"base_url": "URL"}, id="base_url"),
        pytest.param({"api_key": "sk-canary-canary"}, id="api_key"),
        pytest.param({"user_config": {"api_base": "URL"}}, id="user_config"),
        pytest.param({"extra_headers": {"X-Canary": "1"}}, id="extra_headers"),
        pytest.param({"metadata": {"base_url": "URL"}}, id="metadata"),
        pytest.param({"litellm_params": {"api_base": "URL"}}, id="litellm_params"),
    ],
)
@pytest.mark.case("B55")
async def test_b55_body_cannot_choose_where_a_request_goes(
    fake: FakeUpstream, fields: dict[str, Any]
) -> None:
    async with FakeUpstream() as canary, running(settings_for(fake.url)) as editor:
        raw = json.dumps({"message": "a", **fields}).replace("URL", canary.url)
        reply = await put(editor, request(body=raw.encode()))
    assert reply.json["text"] == "Hi."
    assert canary.requests == []
    assert not set(fields) & set(fake.requests[0])
    assert "canary" not in str(fake.headers[0]).lower()
    assert canary.url not in json.dumps(fake.requests[0])


@pytest.mark.parametrize(
    "model",
    [
        case_param("http://evil/x", id="B56-url"),
        case_param("../x", id="B56-dots"),
        case_param("a\r\nX: y", id="B56-header"),
        case_param("x" * 10_000, id="B56-long"),
        case_param("byok:fake:" + "m" * 600, id="B56-over-512"),
        case_param("byok:fake:", id="B56-no-model"),
        case_param(None, id="B56-null"),
        case_param(17, id="B56-number"),
        case_param({"a": 1}, id="B56-object"),
    ],
)
async def test_odd_model_is_the_default_model(fake: FakeUpstream, model: Any) -> None:
    async with running(settings_for(fake.url, model="the-default")) as editor:
        reply = await editor.chat(model=model)
    assert reply.text.startswith("Hi.")
    assert fake.requests[0]["model"] == "the-default"


@pytest.mark.case("B56")
async def test_unknown_upstream_of_a_model_is_never_asked(
    fake: FakeUpstream,
) -> None:
    async with running(settings_for(fake.url, model="the-default")) as editor:
        reply = await editor.chat(model="byok:nowhere:m")
    assert reply.status == 200
    assert "not configured" in reply.text
    assert fake.requests == []


@pytest.mark.case("B93")
async def test_b93_duplicate_request_is_answered_twice(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(answer("Once."))
    replies = await asyncio.gather(editor.chat("x"), editor.chat("x"))
    assert [reply.text for reply in replies] == ["Once.", "Once."]
    assert len(fake.requests) == 2
