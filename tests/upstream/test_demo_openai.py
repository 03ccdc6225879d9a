"""The demo, asked as OpenAI clients ask, also by the official one."""

import json
from typing import Any

import pytest

from byok.errors import BadRequest
from byok.upstream.demo import DemoUpstream
from tests.fakes.daemon import running

VIEW = {"type": "function", "function": {"name": "view", "parameters": {}}}


async def ask(body: Any) -> bytes:
    demo = DemoUpstream(pause=0)
    content = json.dumps(body).encode()
    async with demo.forward("chat/completions", content) as answer:
        return b"".join([data async for data in answer.reads])


def user(*parts: str) -> dict[str, Any]:
    if len(parts) == 1:
        return {"role": "user", "content": parts[0]}
    content = [{"type": "text", "text": part} for part in parts]
    return {"role": "user", "content": content}


async def test_demo_openai_repeats_the_last_user_message() -> None:
    asked = {"model": "m", "messages": [user("old"), user("[workspace]", "Hello!")]}
    told = json.loads(await ask(asked))
    choice = told["choices"][0]
    assert choice["message"]["content"].endswith("You asked: Hello!")
    assert (choice["finish_reason"], told["model"]) == ("stop", "m")
    assert told["usage"]["total_tokens"] > 0


async def test_demo_openai_repeats_a_tool_result() -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": "42 lines"}
    told = json.loads(await ask({"messages": [user("view"), result], "tools": [VIEW]}))
    assert "42 lines" in told["choices"][0]["message"]["content"]


@pytest.mark.parametrize("body", [{}, [], {"messages": []}, {"messages": "x"}], ids=str)
async def test_demo_openai_refuses_a_chat_without_messages(body: Any) -> None:
    with pytest.raises(BadRequest, match="needs messages"):
        await ask(body)


@pytest.mark.parametrize("stream", [False, True])
async def test_demo_openai_answers_the_official_client_and_calls_its_tool(
    stream: bool,
) -> None:
    from openai import AsyncOpenAI  # here, because it takes a second

    async with running(upstream="demo") as editor:
        url = f"{editor.daemon.url}/v1"
        client: Any
        async with AsyncOpenAI(base_url=url, api_key=editor.token) as client:
            if stream:
                said, call, finish, tokens = await _streamed(client)
            else:
                done = await client.chat.completions.create(**_asked())
                message = done.choices[0].message
                function = message.tool_calls[0].function
                said, finish = message.content, done.choices[0].finish_reason
                call = (function.name, function.arguments)
                tokens = done.usage.total_tokens
    assert "no model" in said
    assert (call, finish) == (("view", '{"path": "a"}'), "tool_calls")
    assert tokens > 0


def _asked() -> dict[str, Any]:
    question = user('view {"path": "a"}')
    return {"model": "byok:demo:echo", "messages": [question], "tools": [VIEW]}


async def _streamed(client: Any) -> tuple[str, tuple[str, str], str, int]:
    said = name = arguments = finish = ""
    tokens = 0
    options = {"include_usage": True}
    stream = await client.chat.completions.create(
        **_asked(), stream=True, stream_options=options
    )
    async for chunk in stream:
        tokens += chunk.usage.total_tokens if chunk.usage else 0
        for choice in chunk.choices:
            said += choice.delta.content or ""
            finish += choice.finish_reason or ""
            for call in choice.delta.tool_calls or ():
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    return said, (name, arguments), finish, tokens
