"""Requests of OpenAI clients go through byte for byte, under byok's rules."""

import gzip
import json
from typing import Any

import pytest

from byok.core.chat import Origin, ProviderData
from byok.core.wire.encrypted_content import write_encrypted
from byok.server.http.deadlines import Timing
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

CHAT = "/v1/chat/completions"
JSON = {"Content-Type": "application/json"}
ODD = (
    b' {"n": 1180591620717411303424, "model" : "fake-model", "x": 1.0, "s": "\\ud83d"}'
)


def error_of(answer: Answer) -> dict[str, Any]:
    """The error in OpenAI's shape, and nothing else."""
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json.keys() == {"error"}
    error: dict[str, Any] = answer.json["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    return error


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings"])
async def test_openai_forward_changes_only_the_model_name(
    fake: FakeUpstream, path: str
) -> None:
    whole = b' {"id": "x", "n": 1180591620717411303424}\n'
    fake.play(Script([whole[:5], whole[5:]], headers={**JSON, "X-Secret": "1"}))
    async with running(settings_for(fake.url, api_key_env="K"), environ=KEY) as editor:
        got = await editor.post(f"/v1/{path}", raw=ODD)
    assert (got.status, got.raw) == (200, whole)
    assert got.headers["Content-Type"] == "application/json"
    assert "X-Secret" not in got.headers
    assert fake.paths == [path]
    assert fake.bodies == [ODD]
    assert fake.headers[0]["Authorization"] == "Bearer sk-of-the-upstream"


KEY = {"K": "sk-of-the-upstream"}


async def test_openai_forward_compressed_answer_stays_compressed(
    fake: FakeUpstream, client: Editor
) -> None:
    packed = gzip.compress(b'{"id": "x"}')
    fake.play(Script([packed], headers={**JSON, "Content-Encoding": "gzip"}))
    got = await client.post(CHAT)
    assert got.headers["Content-Encoding"] == "gzip"
    assert got.json == {"id": "x"}  # the test's client unpacks it


@pytest.mark.parametrize(
    ("query", "of_codex"),
    [("", None), ("?after_id=x", None), ("?client_version=0.99.0", [])],
)
async def test_openai_forward_lists_models(
    fake: FakeUpstream, query: str, of_codex: list[object] | None
) -> None:
    async with running(settings_for(fake.url)) as editor:
        await editor.services.catalog.settle(PATIENCE)
        headers = {"Authorization": f"Bearer {editor.token}"}
        async with editor.http.get(
            f"{editor.daemon.url}/v1/models{query}", headers=headers
        ) as response:
            listed = await response.json()
    assert [row["id"] for row in listed["data"]] == ["byok:fake:fake-model"]
    assert listed.get("models") == of_codex


async def test_openai_forward_without_the_path_says_so(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([b'{"detail":"Not Found"}'], 404, JSON))
    got = await client.post("/v1/embeddings", {"model": "fake-model", "input": "a"})
    assert got.status == 404
    message = error_of(got)["message"]
    assert "fake: it answered 404: Not Found." in message
    assert "has no /embeddings" in message
    assert "model's name" not in message


async def test_openai_forward_of_the_demo_has_chats_only(editor: Editor) -> None:
    got = await editor.post("/v1/embeddings", {"model": "m", "input": "a"})
    assert (got.status, error_of(got)["code"]) == (422, "not_served")


@pytest.mark.case("F09")
async def test_openai_forward_retries_a_failure_before_the_answer(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script(before_head=True), Script(answer("Hi.")))
    got = await client.post(CHAT)
    assert got.status == 200
    assert len(fake.requests) == 2


@pytest.mark.case("F02")
async def test_openai_forward_stream_that_breaks_before_its_first_event_is_a_status(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([], end="reset"))
    got = await client.post(CHAT)
    assert (got.status, error_of(got)["code"]) == (502, "upstream_cut")


@pytest.mark.case("F02")
async def test_openai_forward_broken_stream_ends_with_an_error_event(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([delta(content="Half")], end="reset"))
    got = await client.post(CHAT)
    *before, last = got.raw.strip().split(b"\n\n")
    assert before[0] == delta(content="Half").strip()
    error = json.loads(last.removeprefix(b"data: "))["error"]
    assert error["code"] == "upstream_cut"
    assert len(fake.requests) == 1


@pytest.mark.case("F02")
async def test_openai_forward_broken_answer_is_an_error(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([b'{"half":'], headers=JSON, end="reset"))
    got = await client.post(CHAT)
    assert (got.status, error_of(got)["code"]) == (502, "upstream_cut")


async def _begun(editor: Editor) -> Any:
    return await editor.http.post(
        editor.daemon.url + CHAT,
        json={"stream": True},
        headers={"Authorization": f"Bearer {editor.token}"},
    )


@pytest.mark.case("F39")
async def test_openai_forward_stop_ends_a_stream_with_an_error_event(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="Half")], end="hang"))
    quick = Timing(grace=0.1, last_words=0.5)
    async with running(settings_for(fake.url), timing=quick) as editor:
        response = await _begun(editor)
        assert await response.content.readany()
        await editor.daemon.stop()
        assert b"shutting_down" in await response.content.read()


MESSAGES = "/v1/messages"


async def test_forward_messages_with_the_clients_version_and_byoks_key(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([b'{"id": "x"}'], headers=JSON))
    settings = settings_for(fake.url, dialect="anthropic", api_key_env="K")
    sent = {
        "X-Api-Key": "of-the-client",
        "anthropic-version": "2099-01-01",
        "anthropic-beta": "one,two",
        "X-Other": "1",
    }
    async with running(settings, environ=KEY) as editor:
        got = await editor.post(f"{MESSAGES}?beta=true", raw=ODD, headers=sent)
        await editor.post(MESSAGES, raw=ODD, headers={"anthropic-beta": "x" * 1001})
        await editor.post(f"{MESSAGES}/count_tokens", raw=ODD)
    assert (got.status, got.raw) == (200, b'{"id": "x"}')
    assert fake.paths == ["messages", "messages", "messages/count_tokens"]
    assert fake.bodies[0] == ODD
    first, second, _ = ({k.lower(): v for k, v in h.items()} for h in fake.headers)
    assert first["x-api-key"] == "sk-of-the-upstream"
    assert (first["anthropic-version"], first["anthropic-beta"]) == (
        "2099-01-01",
        "one,two",
    )
    assert "authorization" not in first
    assert "x-other" not in first
    assert "anthropic-beta" not in second


async def test_forward_messages_with_byoks_reasoning_are_translated(
    fake: FakeUpstream,
) -> None:
    sealed = write_encrypted(ProviderData(Origin("gemini", "box", "m"), {}))
    block = {"type": "thinking", "thinking": "hm", "signature": sealed}
    messages = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [block, {"type": "text", "text": "Hi."}]},
        {"role": "user", "content": "Go on."},
    ]
    async with running(settings_for(fake.url, dialect="anthropic")) as editor:
        await editor.post(MESSAGES, {"max_tokens": 9, "messages": messages})
    assert b"byok" not in fake.bodies[0]
    assert fake.requests[0]["stream"] is True


async def test_forward_responses_broken_stream_ends_with_a_failed_response(
    fake: FakeUpstream,
) -> None:
    begun = b'data: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
    fake.play(Script([begun], end="reset"))
    async with running(settings_for(fake.url, dialect="openai_responses")) as editor:
        got = await editor.post("/v1/responses", {"stream": True})
    *_, error, failed = [
        json.loads(line.removeprefix(b"data: "))
        for line in got.raw.split(b"\n")
        if line.startswith(b"data: ")
    ]
    assert (error["type"], failed["type"]) == ("error", "response.failed")
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"]["message"] == error["error"]["message"]


async def test_forward_messages_broken_stream_ends_with_anthropics_error(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([b'data: {"type":"ping"}\n\n'], end="reset"))
    async with running(settings_for(fake.url, dialect="anthropic")) as editor:
        got = await editor.post(MESSAGES, {"stream": True})
    name, data = got.raw.strip().split(b"\n\n")[-1].split(b"\n")
    assert name == b"event: error"
    error = json.loads(data.removeprefix(b"data: "))
    assert (error["type"], error["error"]["type"]) == ("error", "api_error")
