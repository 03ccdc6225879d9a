"""The official Python client of OpenAI works through byok's /v1."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.fakes.clients import openai_client
from tests.fakes.daemon import running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
    refusal,
)

openai: Any = None


@pytest.fixture(scope="module", autouse=True)
def official_client() -> None:
    """Import the client, whose hundreds of modules only this file needs."""
    global openai
    openai = pytest.importorskip("openai", reason="the openai client is not installed")


JSON = {"Content-Type": "application/json"}
HI: list[Any] = [{"role": "user", "content": "Hi?"}]
ASK: dict[str, Any] = {"model": "fake-model", "messages": HI}
TOOL = {
    "type": "function",
    "function": {"name": "view", "parameters": {"type": "object"}},
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "view", "arguments": '{"path": "ä.py"}'},
}
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}


@pytest.fixture
async def client(fake: FakeUpstream) -> AsyncIterator[Any]:
    """A client of a daemon whose upstream plays a script."""
    async with (
        running(settings_for(fake.url, patience=59)) as editor,
        openai_client(editor.daemon.url, editor.token) as made,
    ):
        yield made


def whole(value: Any) -> Script:
    """Script one answer that is not streamed."""
    return Script([json.dumps(value).encode()], headers=JSON)


def completion(message: Any, finish: str = "stop") -> Script:
    """Script a whole chat completion."""
    return whole(
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "fake-model",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", **message},
                    "finish_reason": finish,
                }
            ],
            "usage": USAGE,
        }
    )


async def test_openai_client_chat(fake: FakeUpstream, client: Any) -> None:
    fake.play(completion({"content": "Grüße, 世界 🌍"}))
    got = await client.chat.completions.create(**ASK, temperature=0.5, seed=7)
    assert got.choices[0].message.content == "Grüße, 世界 🌍"
    assert got.choices[0].finish_reason == "stop"
    assert got.usage.total_tokens == 8
    assert fake.requests == [{**ASK, "temperature": 0.5, "seed": 7}]


async def test_openai_client_streamed_chat(fake: FakeUpstream, client: Any) -> None:
    usage = event({"id": "c1", "choices": [], "usage": USAGE})
    fake.play([*answer("Grü", "ße 🌍")[:-1], usage, DONE])
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(**ASK, stream=True)
    ]
    told = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(c.delta.content or "" for c in told) == "Grüße 🌍"
    assert told[-1].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens == 5


async def test_openai_client_gets_the_first_words_before_the_last(
    fake: FakeUpstream, client: Any
) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    async with await client.chat.completions.create(**ASK, stream=True) as stream:
        async with asyncio.timeout(PATIENCE):
            chunk = await anext(aiter(stream))
    assert chunk.choices[0].delta.content == "One"


async def test_openai_client_tool_call_and_result(
    fake: FakeUpstream, client: Any
) -> None:
    fake.play(
        completion({"content": None, "tool_calls": [CALL]}, "tool_calls"),
        completion({"content": "It is empty."}),
    )
    got = await client.chat.completions.create(**ASK, tools=[TOOL], tool_choice="auto")
    (call,) = got.choices[0].message.tool_calls
    assert call.model_dump(exclude_none=True) == CALL
    said = got.choices[0].message.model_dump(exclude_none=True)
    result = {"role": "tool", "tool_call_id": call.id, "content": ""}
    again = {**ASK, "messages": [*HI, said, result]}
    got = await client.chat.completions.create(**again, tools=[TOOL])
    assert got.choices[0].message.content == "It is empty."
    assert fake.requests[1]["messages"][1:] == [said, result]


def chunk(finish: str | None = None, **fields: Any) -> bytes:
    """Write a chunk with every field that the client's own accumulation looks at."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": [choice]})


@pytest.mark.parametrize("count", [1, 2])
async def test_openai_client_streamed_tool_calls(
    fake: FakeUpstream, client: Any, count: int
) -> None:
    calls = [{"index": n, **CALL, "id": f"call_{n}"} for n in range(count)]
    more = [{"index": count - 1, "function": {"arguments": " "}}]
    fake.play(
        [
            chunk(role="assistant", content=None),
            *(chunk(tool_calls=[call]) for call in calls),
            chunk(tool_calls=more),
            chunk("tool_calls"),
            DONE,
        ]
    )
    async with client.chat.completions.stream(**ASK, tools=[TOOL]) as events:
        got = await events.get_final_completion()
    (choice,) = got.choices
    assert [call.id for call in choice.message.tool_calls] == [
        call["id"] for call in calls
    ]
    assert choice.message.tool_calls[-1].function.arguments == '{"path": "ä.py"} '
    assert choice.finish_reason == "tool_calls"


@pytest.mark.parametrize("form", ["float", "base64"])
async def test_openai_client_embeddings(
    fake: FakeUpstream, client: Any, form: str
) -> None:
    vector = [0.5, -1.0] if form == "float" else "AAAAPwAAgL8="
    row = {"object": "embedding", "index": 0, "embedding": vector}
    fake.play(whole({"object": "list", "data": [row], "model": "m", "usage": USAGE}))
    options = {"encoding_format": "float"} if form == "float" else {}
    got = await client.embeddings.create(model="fake-model", input=["a"], **options)
    assert got.data[0].embedding == [0.5, -1.0]
    assert fake.paths == ["embeddings"]


async def test_openai_client_response(fake: FakeUpstream, client: Any) -> None:
    fake.play(answer("Hi ", "🌍"))
    got = await client.responses.create(model="fake-model", input="Hi?")
    assert (got.output_text, got.status) == ("Hi 🌍", "completed")
    assert fake.paths == ["chat/completions"]


async def test_openai_client_streamed_response(fake: FakeUpstream, client: Any) -> None:
    fake.play(answer("Hi", " 🌍"))
    async with client.responses.stream(model="fake-model", input="Hi?") as stream:
        said = [e.delta async for e in stream if e.type == "response.output_text.delta"]
        final = await stream.get_final_response()
    assert "".join(said) == "Hi 🌍"
    assert final.output_text == "Hi 🌍"


async def test_openai_client_lists_models_and_can_use_them(
    fake: FakeUpstream, client: Any
) -> None:
    fake.play(completion({"content": "Hi."}))
    (model,) = (await client.models.list()).data
    assert (model.id, model.owned_by) == ("byok:fake:fake-model", "fake")
    await client.chat.completions.create(model=model.id, messages=HI)
    assert fake.requests[0]["model"] == "fake-model"
    assert (await client.models.retrieve(model.id)).id == model.id
    assert (await client.models.retrieve("fake-model")).id == model.id
    assert isinstance(await failed(client.models.retrieve("x")), openai.NotFoundError)


async def test_openai_client_request_id_can_be_found_in_the_log(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "byok.access")
    fake.play(completion({"content": "Hi."}))
    async with (
        running(settings_for(fake.url)) as editor,
        openai_client(editor.daemon.url, editor.token) as client,
    ):
        got = await client.chat.completions.create(**ASK)
        async with client.chat.completions.with_streaming_response.create(
            **ASK, stream=True
        ) as stream:
            await stream.read()
    assert got._request_id and got._request_id in caplog.text
    assert stream.request_id and stream.request_id in caplog.text


# Errors

ASKS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "chat": lambda c: c.chat.completions.create(**ASK),
    "a streamed chat": lambda c: c.chat.completions.create(**ASK, stream=True),
    "embeddings": lambda c: c.embeddings.create(model="m", input="a"),
    "a response": lambda c: c.responses.create(model="m", input="a"),
}


async def failed(ask: Awaitable[Any]) -> Any:
    """Give the exception of a request."""
    with pytest.raises(openai.APIError) as caught:
        await ask
    return caught.value


REFUSALS = [
    (400, "BadRequestError", "upstream_refused"),
    (401, "AuthenticationError", "upstream_auth"),
    (403, "PermissionDeniedError", "upstream_auth"),
    (404, "NotFoundError", "upstream_not_found"),
    (409, "ConflictError", "upstream_refused"),
    (422, "UnprocessableEntityError", "upstream_refused"),
    (501, "InternalServerError", "upstream_refused"),
]


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
async def test_a_refusal_is_the_clients_own_exception(
    fake: FakeUpstream,
    client: Any,
    ask: Callable[[Any], Awaitable[Any]],
) -> None:
    for count, (status, kind, code) in enumerate(REFUSALS, 1):
        fake.play(refusal(status, "No such luck."))
        error = await failed(ask(client))
        assert (type(error).__name__, error.code) == (kind, code)
        assert f"fake: it answered {status}: No such luck." in str(error)
        assert len(fake.requests) == count


async def test_openai_client_rate_limit_has_retry_after(
    fake: FakeUpstream, client: Any
) -> None:
    fake.play(refusal(429, "Slow down.", {"Retry-After": "60"}))
    error = await failed(ASKS["chat"](client))
    assert isinstance(error, openai.RateLimitError)
    assert (error.code, error.type) == ("rate_limit_exceeded", "rate_limit_error")
    assert error.response.headers["Retry-After"] == "60"
    assert "Slow down." in error.message


async def test_openai_client_gets_the_upstreams_error_code(
    fake: FakeUpstream, client: Any
) -> None:
    body = {"error": {"message": "Too long.", "code": "context_length_exceeded"}}
    fake.play(Script([json.dumps(body).encode()], 400, JSON))
    error = await failed(ASKS["chat"](client))
    assert isinstance(error, openai.BadRequestError)
    assert error.code == "context_length_exceeded"


async def test_openai_client_wrong_token_is_an_authentication_error(
    fake: FakeUpstream,
) -> None:
    async with (
        running(settings_for(fake.url)) as editor,
        openai_client(editor.daemon.url, "sk-wrong") as client,
    ):
        errors = [await failed(ask(client)) for ask in ASKS.values()]
        errors.append(await failed(client.models.list()))
    for error in errors:
        assert isinstance(error, openai.AuthenticationError)
        assert error.code == "unauthorized"
        assert "byok" in error.message
    assert fake.requests == []


# Ends


async def test_openai_client_cancel_disconnects_from_the_upstream(
    fake: FakeUpstream, client: Any
) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    stream = await client.chat.completions.create(**ASK, stream=True)
    await anext(aiter(stream))
    await stream.close()
    await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


@pytest.mark.parametrize("end", ["reset", "hang"])
async def test_openai_client_broken_stream_is_an_error_after_its_text(
    fake: FakeUpstream, end: str
) -> None:
    fake.play(Script([delta(content="Half")], end=end))
    settings = settings_for(fake.url, timeout=3)
    async with (
        running(settings) as editor,
        openai_client(editor.daemon.url, editor.token) as client,
    ):
        heard: list[str] = []

        async def read() -> None:
            stream = await client.chat.completions.create(**ASK, stream=True)
            async for chunk in stream:
                heard.append(chunk.choices[0].delta.content)

        error = await failed(read())
    assert heard == ["Half"]
    assert error.code == {"reset": "upstream_cut", "hang": "upstream_timeout"}[end]
    assert error.message.startswith("fake: ")
    assert not isinstance(error, openai.APIConnectionError)


async def test_openai_client_broken_response_has_failed(
    fake: FakeUpstream, client: Any
) -> None:
    fake.play(Script([delta(content="Half")], end="reset"))
    heard: list[str] = []

    async def read() -> None:
        stream = await client.responses.create(model="m", input="a", stream=True)
        async for heard_event in stream:
            heard.append(heard_event.type)

    error = await failed(read())
    assert "response.output_text.delta" in heard
    assert error.code == "upstream_cut"
    assert error.message.startswith("fake: ")


async def test_openai_client_gets_an_error_inside_the_upstreams_stream(
    fake: FakeUpstream, client: Any
) -> None:
    bad = {"error": {"message": "Overloaded.", "code": "overloaded"}}
    fake.play([delta(content="Half"), event(bad)])

    async def read() -> None:
        async for _ in await client.chat.completions.create(**ASK, stream=True):
            pass

    error = await failed(read())
    assert (error.message, error.code) == ("Overloaded.", "overloaded")
