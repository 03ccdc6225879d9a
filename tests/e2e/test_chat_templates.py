"""Agents on local servers whose chat templates refuse some conversations.

Tools are interrupted, give pictures back and are called in parallel. Each template
refuses a conversation once for each thing that it does not take: what byok learned then
outlasts the daemon.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import cycle
from typing import Any, TypeAlias

import pytest
from aiohttp import web

from tests.fakes.bodies import image_node, result_node, text_node, tool
from tests.fakes.clients import AgentClient
from tests.fakes.daemon import Editor, running
from tests.fakes.strict import broken_rules
from tests.fakes.upstream import DONE, FakeUpstream, Script, delta, play

# Servers of local models whose chat templates refuse some conversations.
#
# The rules are those of the templates that come with the models (Mistral, Llama,
# Gemma), written anew; the words that a template raises are what the servers repeat.


Body: TypeAlias = dict[str, Any]
Template: TypeAlias = Callable[[list[Body]], Iterator[str]]
# Of a conversation's second user message on, several calls are made at once.
_CALLS = (1, 2, 1, 3)
# What byok keeps to although templates accept more.
_OWN = ("two assistant", "two user", "unknown key")


def _spoken(messages: list[Body], *, skips_calls: bool) -> list[str]:
    """Return the roles of the messages that a template counts."""
    counted = [m for m in messages if m["role"] in ("user", "assistant")]
    if skips_calls:
        counted = [m for m in counted if not m.get("tool_calls")]
    return [m["role"] for m in counted]


def _alternating(roles: list[str]) -> bool:
    return all(role == ("user", "assistant")[n % 2] for n, role in enumerate(roles))


def _nine(messages: list[Body]) -> Iterator[str]:
    ids = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    ids += [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    if any(len(call_id) != 9 for call_id in ids):
        yield "Tool call IDs should be alphanumeric strings with length 9!"


def mistral(messages: list[Body]) -> Iterator[str]:
    """Mistral Nemo, Mistral Small 3.2: roles alternate, ids have nine characters."""
    if not _alternating(_spoken(messages, skips_calls=True)):
        yield (
            "After the optional system message, conversation roles must alternate "
            "user/assistant/user/assistant/..."
        )
    yield from _nine(messages)


def ministral(messages: list[Body]) -> Iterator[str]:
    """Ministral 3, Devstral 2: roles alternate apart from calls and results."""
    if not _alternating(_spoken(messages, skips_calls=True)):
        yield (
            "After the optional system message, conversation roles must alternate user "
            "and assistant roles except for tool calls and results."
        )


def llama(messages: list[Body]) -> Iterator[str]:
    """Llama 3.1 to 3.3: one call at a time."""
    if any(len(m.get("tool_calls") or ()) > 1 for m in messages):
        yield "This model only supports single tool-calls at once!"


def gemma(messages: list[Body]) -> Iterator[str]:
    """Gemma 2: no system message, and nobody but the user and the assistant."""
    if messages[0]["role"] == "system":
        yield "System role not supported"
    if not _alternating([m["role"] for m in messages]):
        yield "Conversation roles must alternate user/assistant/user/assistant/..."


def gpt_oss(messages: list[Body]) -> Iterator[str]:
    """The template of gpt-oss: beside calls there are thoughts or words, not both."""
    for message in messages:
        thought = message.get("reasoning_content") or message.get("reasoning")
        if message.get("tool_calls") and message.get("content") and thought:
            yield (
                "Cannot pass both content and thinking in an assistant message with "
                "tool calls! Put the analysis message in one or the other, but not "
                "both."
            )


TEMPLATES: dict[str, Template] = {
    "mistral": mistral,
    "ministral": ministral,
    "llama": llama,
    "gemma": gemma,
    "gpt_oss": gpt_oss,
}


def _llamacpp(raised: str) -> tuple[int, Any]:
    message = (
        "\n------------\nWhile executing CallExpression at line 47, column 32 in "
        f"source:\n...== 0) %}}↵            {{{{- raise_exception('{raised[:45]}...\n"
        f"{' ' * 43}^\nError: Jinja Exception: {raised}"
    )
    return 500, {"error": {"code": 500, "message": message, "type": "server_error"}}


def _vllm(raised: str) -> tuple[int, Any]:
    error = {"object": "error", "message": f"{raised} None", "type": "BadRequestError"}
    return 400, {**error, "param": None, "code": 400}


def _lmstudio(raised: str) -> tuple[int, Any]:
    return 400, {"error": f'Error rendering prompt with jinja template: "{raised}".'}


def _tgi(raised: str) -> tuple[int, Any]:
    text = f"Template error: {raised} (in <string>:5)"
    return 422, {"error": text, "error_type": "template_error"}


def _ollama(raised: str) -> tuple[int, Any]:
    """Ollama runs llama.cpp for newer models, and repeats what it says."""
    return 500, {"error": {"message": str(_llamacpp(raised)[1]), "type": "api_error"}}


# How each server passes on what a template raises.
SERVERS = {
    "llamacpp": _llamacpp,
    "vllm": _vllm,
    "lmstudio": _lmstudio,
    "tgi": _tgi,
    "ollama": _ollama,
}


class TemplateServer(FakeUpstream):
    """A local server with one model, which reasons and calls tools.

    `refusals` are what its template raised, `broken` is what no server would accept.
    """

    def __init__(self, template: str, server: str) -> None:
        super().__init__()
        self.refusals: list[str] = []
        self.broken: list[str] = []
        self._template = TEMPLATES[template]
        self._form = SERVERS[server]
        self._calls = cycle(_CALLS)
        self._number = 0

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if request.match_info.get("path") != "chat/completions":
            return web.json_response({"detail": "Not Found"}, status=404)
        body = await request.json()
        self.requests.append(body)
        if raised := next(self._template(body["messages"]), ""):
            self.refusals.append(raised)
            status, error = self._form(raised)
            return web.json_response(error, status=status)
        spoken = ("reasoning_content", "reasoning")
        found = broken_rules(body, spoken=spoken)
        self.broken += [rule for rule in found if not rule.startswith(_OWN)]
        return await play(request, Script(self._answer(body)))

    def _answer(self, body: Body) -> list[bytes]:
        """Think and call tools after a question, and answer after their results."""
        self._number += 1
        thought = delta(reasoning_content=f"Thought {self._number}.")
        last = body["messages"][-1]
        asks = last["role"] == "user" and str(last["content"]).endswith("?")
        if not asks or not body.get("tools"):
            text = f"Answer {self._number}."
            return [thought, delta(content=text), delta(finish="stop"), DONE]
        name = body["tools"][0]["function"]["name"]
        calls = [
            {
                "index": place,
                "id": f"call_{self._number:04d}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": f'{{"n": {place}}}'},
            }
            for place in range(next(self._calls))
        ]
        words = delta(content="I look.")
        return [
            thought,
            words,
            delta(tool_calls=calls),
            delta(finish="tool_calls"),
            DONE,
        ]


TURNS = 10
INTERRUPTED, PICTURED = (2, 6), 4
# The most that each template may refuse, in all of its conversation.
MOST = {"mistral": 2, "ministral": 1, "llama": 1, "gemma": 3, "gpt_oss": 1}
SHOT = {
    "content_nodes": [
        {"type": 1, "text_content": "shot"},
        {"type": 2, "image_content": image_node()["image_node"]},
    ]
}


class Person(AgentClient):
    """A user who stops tools in some turns, and whose tools make a screenshot."""

    async def run(self, editor: Editor, model: str, turns: range) -> None:
        """Ask a question in each turn, and go on until the model calls no tool."""
        for turn in turns:
            answer = await self.step(editor, model)
            assert "error" not in answer.last, (model, turn, answer.last["error"])
            assert answer.tool_uses, (model, turn, answer.text)
            if turn in INTERRUPTED:
                self._results = []
                continue
            ids = [use["tool_use_id"] for use in answer.tool_uses]
            more: dict[str, Any] = SHOT if turn == PICTURED else {}
            self._results = [result_node(call_id, "done", **more) for call_id in ids]
            answer = await self.step(editor, model)
            assert "error" not in answer.last, (model, turn, answer.last["error"])
            assert "Answer" in answer.text, (model, turn, answer.text)

    def _question(self, words: str) -> list[dict[str, Any]]:
        return [text_node(words)]


@pytest.fixture
async def servers() -> AsyncIterator[Mapping[str, TemplateServer]]:
    async with AsyncExitStack() as stack:
        yield {
            f"{template}-{server}".replace("_", "-"): await stack.enter_async_context(
                TemplateServer(template, server)
            )
            for template in TEMPLATES
            for server in SERVERS
        }


@pytest.mark.slow
async def test_agents_stay_alive_with_the_templates_of_local_models(
    servers: Mapping[str, TemplateServer],
) -> None:
    settings = {
        "upstreams": {
            name: {"base_url": server.url, "models": ["m"], "timeout": 20}
            for name, server in servers.items()
        }
    }
    people = {name: Person([tool()]) for name in servers}
    learned: dict[str, int] = {}
    for turns in (range(TURNS - 3), range(TURNS - 3, TURNS)):
        learned = {name: len(server.refusals) for name, server in servers.items()}
        async with running(settings) as editor:
            await asyncio.gather(
                *(
                    person.run(editor, f"byok:{name}:m", turns)
                    for name, person in people.items()
                )
            )
    for name, server in servers.items():
        most = MOST[name.rpartition("-")[0].replace("-", "_")]
        assert 0 < len(server.refusals) <= most, (name, server.refusals)
        assert len(server.refusals) == learned[name], (name, "repeated after a restart")
        assert server.broken == [], name
