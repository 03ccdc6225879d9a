"""The chat templates of real models, rendered as vLLM and llama.cpp do.

They are llama.cpp's models/templates/*.jinja, which also come with the source of
llama-cpp-python on PyPI. They are not part of this project: the test is skipped where
`templates/` in the shared folder or jinja2 is missing.
"""

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.remedies import Remedies
from byok.upstream.spec import Api, UpstreamSpec
from tests.fakes.chat_templates import SERVERS
from tests.fakes.histories import PNG, user

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "description": ""}}}
TOOLS = tuple(ToolDefinition(name, "d", SCHEMA) for name in ("view", "grep"))
THOUGHT = ProviderData(
    Origin("openai_chat", "box", "m"), {"field": "reasoning_content"}
)
# Templates that refused agents for good; all of them must be there.
REFUSING = {
    "Mistral-Small-3.2-24B-Instruct-2506",
    "google-gemma-2-2b-it",
    "meta-llama-Llama-3.1-8B-Instruct",
    "meta-llama-Llama-3.2-3B-Instruct",
    "meta-llama-Llama-3.3-70B-Instruct",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "mistralai-Mistral-Nemo-Instruct-2407",
}


class RaisedError(Exception):
    """What a template raises."""


def templates(folder: Path) -> dict[str, Any]:
    """Return the templates that jinja2 can compile, by name."""
    if not any(folder.glob("*.jinja")):
        pytest.skip("no chat templates: put llama.cpp's into templates/ of BYOK_SHARED")
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    jinja2, sandbox = (importlib.import_module(f"jinja2{m}") for m in ("", ".sandbox"))

    def fail(message: str) -> None:
        raise RaisedError(message)

    def write(value: Any, indent: int | None = None, **_: Any) -> str:
        value = list(value) if hasattr(value, "__next__") else value
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment = sandbox.SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters |= {"tojson": write, "from_json": json.loads}
    environment.globals |= {"raise_exception": fail, "strftime_now": lambda _: "today"}
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*.jinja")):
        try:
            found[file.stem] = environment.from_string(file.read_text())
        except jinja2.TemplateSyntaxError:
            continue  # tags that only training knows
    return found


def render(template: Any, body: dict[str, Any]) -> None:
    """Render a body: arguments are objects for most templates, and text for others.

    Raises:
        RaisedError: the template refuses the conversation.
    """
    failures: list[Exception] = []
    for parse in (json.loads, str):
        for flat in (True, False):
            try:
                template.render(
                    messages=[*_messages(body, parse, flat=flat)],
                    tools=body.get("tools"),
                    add_generation_prompt=True,
                    bos_token="<s>",
                    eos_token="</s>",
                    functions="",
                    datetime="",
                )
                return
            except RaisedError:
                raise
            except Exception as error:  # of jinja2, and of any kind
                failures.append(error)
    raise failures[0]


def _messages(
    body: dict[str, Any], parse: Callable[[str], Any], *, flat: bool
) -> Iterator[dict[str, Any]]:
    for message in body["messages"]:
        content = message["content"] or ""
        if isinstance(content, list) and flat:
            content = "\n".join(part.get("text", "") for part in content)
        calls = [
            {**call, "function": _parsed(call["function"], parse)}
            for call in message.get("tool_calls") or ()
        ]
        yield {
            **message,
            "content": content,
            **({"tool_calls": calls} if calls else {}),
        }


def _parsed(function: dict[str, Any], parse: Callable[[str], Any]) -> dict[str, Any]:
    return {**function, "arguments": parse(function["arguments"])}


def conversation() -> Iterator[tuple[Message, ...]]:
    """Yield the requests of ten turns of an agent, each longer than the one before."""
    messages = [Message(Role.SYSTEM, (TextPart("You are an agent."),))]
    for turn in range(10):
        words: list[Part] = [TextPart(f"Question {turn}?"), *([PNG] * (turn == 3))]
        messages.append(Message(Role.USER, (*words,)))
        yield (*messages,)
        calls = [
            ToolCall(f"call_{turn}_{n}", "view", f'{{"n": {n}}}')
            for n in range({1: 2, 5: 3}.get(turn, 1))
        ]
        said: list[Part] = [TextPart("I look.")] * (turn % 2)
        thought = ThinkingPart("Hm.", THOUGHT)
        messages.append(Message(Role.ASSISTANT, (thought, *said, *calls)))
        shots: tuple[ImagePart, ...] = (PNG,) * (turn == 4)
        messages += [
            Message(Role.TOOL, (ToolResult(c.id, c.name, "ok", images=shots),))
            for c in calls
        ]
        if turn in (2, 6):
            continue  # the user interrupts the tool
        yield (*messages,)
        messages.append(Message(Role.ASSISTANT, (thought, TextPart(f"So {turn}."))))
    yield (*messages, user("Thanks."))


def refusals_of(template: Any, server: str) -> list[str]:
    """Return what a template raises in a conversation; each time a remedy must help."""
    api = Api(OpenAIChat.of(server), "http://127.0.0.1:1")
    remedies, raised = Remedies(UpstreamSpec("box", (api,))), list[str]()
    for messages in conversation():
        chat = ChatRequest(messages, TOOLS, agent=True, client_parallel_tools=True)
        request = remedies.begin(ModelFacts("m"))
        while True:
            written = request.write(chat)
            try:
                render(template, json.loads(written.content))
                break
            except RaisedError as error:
                raised.append(str(error))
                status, body = SERVERS[server](str(error))
                refused = refusal_of(body, status)
                found = request.find(refused, chat, written.head)
                assert found, raised
                request = found
        request.remember()
    return raised


@pytest.mark.slow
@pytest.mark.parametrize("server", ["llamacpp", "vllm", "lmstudio", "tgi"])
def test_agents_stay_alive_with_every_template(shared: Path, server: str) -> None:
    found = templates(shared / "templates")
    raised = {name: refusals_of(found[name], server) for name in found}
    assert {name for name, texts in raised.items() if texts} >= REFUSING
    assert {name: texts for name, texts in raised.items() if len(texts) > 2} == {}
