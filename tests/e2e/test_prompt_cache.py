"""An agent's prompt is read from the upstream's cache, whatever the editor changes."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.bodies import tool
from tests.fakes.clients import AgentClient
from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.messages_api import call_block, end, start
from tests.fakes.upstream import DONE, FakeUpstream, Script, event, play, tool_answer

# An upstream that caches the beginnings of prompts, as its vendor's guide says.
#
# It answers each request with one tool call, and counts four characters as a token.


_LOOKBACK = 20  # blocks before a cache point that Anthropic's API tries
_POINT = "cache_control"


class _Prompt:
    """The blocks of a prompt in the order in which they are cached."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.digests: list[bytes] = []
        self.sizes: list[int] = []
        self.points: list[int] = []
        digest, size = blake2b(), 0
        for place, block in enumerate(_blocks(body)):
            raw = json.dumps({k: v for k, v in block.items() if k != _POINT}).encode()
            digest.update(raw)
            size += len(raw) // 4
            self.digests.append(digest.digest())
            self.sizes.append(size)
            if _POINT in block:
                self.points.append(place)
        if _POINT in body and len(self.sizes) - 1 not in self.points:
            self.points.append(len(self.sizes) - 1)


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from body.get("tools", ())
    yield from body.get("system", ())
    for message in body["messages"]:
        content = message.get("content")
        around = {key: value for key, value in message.items() if key != "content"}
        if isinstance(content, str):  # the same as one part
            content = [{"type": "text", "text": content}]
        yield from ({**around, **part} for part in content or [{}])


class CachingUpstream(FakeUpstream):
    """Caches at cache points, or with `keyed` for each `prompt_cache_key`.

    Without `at_top` it takes those of blocks only, as Bedrock and Vertex do.
    """

    def __init__(self, *, keyed: bool = False, at_top: bool = True) -> None:
        super().__init__()
        self.keyed = keyed
        self.refusals: list[str] = []
        self._at_top = at_top  # takes a cache point at the top of the body
        self.reads: list[float] = []  # the share of each prompt that was cached
        self._written: set[tuple[str, bytes]] = set()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if _POINT in body and not self._at_top:
            self.refusals.append(f"{_POINT}: Extra inputs are not permitted")
            error = {"type": "invalid_request_error", "message": self.refusals[-1]}
            return web.json_response({"type": "error", "error": error}, status=400)
        self.requests.append(body)
        prompt = _Prompt(body)
        read = self._read(prompt, body)
        size = prompt.sizes[-1]
        self.reads.append(read / size)
        count = len(self.requests)
        if request.match_info.get("path") == "messages":
            return await play(request, Script(_anthropic(count, size, read)))
        return await play(request, Script(_chat(count, size, read)))

    def _read(self, prompt: _Prompt, body: dict[str, Any]) -> int:
        """Return the tokens that are read from the cache, and write what is asked."""
        key = body.get("prompt_cache_key", "") if self.keyed else ""
        last = len(prompt.sizes) - 1
        if self.keyed:
            points, lookback = ([last] if key else []), last
        else:
            points, lookback = prompt.points, _LOOKBACK
        found = [
            place
            for point in points
            for place in range(max(0, point - lookback), point + 1)
            if (key, prompt.digests[place]) in self._written
        ]
        written = range(last + 1) if self.keyed and key else points
        self._written |= {(key, prompt.digests[place]) for place in written}
        return prompt.sizes[max(found)] if found else 0


def _chat(count: int, size: int, read: int) -> list[bytes]:
    usage = {
        "prompt_tokens": size,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": read},
    }
    pieces = tool_answer("view", json.dumps({"path": f"{count}.py"}), f"call_{count}")
    return [*pieces[:-1], event({"choices": [], "usage": usage}), DONE]


def _anthropic(count: int, size: int, read: int) -> list[bytes]:
    given = json.dumps({"path": f"{count}.py"})
    return [
        start(
            input_tokens=0,
            cache_read_input_tokens=read,
            cache_creation_input_tokens=size - read,
            output_tokens=1,
        ),
        call_block(0, "view", given, call_id=f"toolu_{count}"),
        end("tool_use"),
    ]


GUIDELINES = "Write small functions. " * 400
TOOLS = [
    tool(name, says=f"Use {name} for what it does. " * 8, path="string")
    for name in ("view", "launch-process", "save-file", "remove-files", "diagnostics")
]
CASES = [
    pytest.param({"type": "anthropic"}, "claude-sonnet-4-6", False, id="anthropic"),
    pytest.param(
        {"type": "openrouter"}, "anthropic/claude-sonnet-4.6", False, id="openrouter"
    ),
    pytest.param(
        {"type": "openai", "dialect": "openai_chat"}, "gpt-4.1", True, id="keyed"
    ),
]


@pytest.mark.parametrize(
    ("section", "model"),
    [
        ({"type": "anthropic"}, "claude-opus-5"),
        ({"type": "openrouter"}, "anthropic/claude-opus-5"),
    ],
)
async def test_claude_on_bedrock_and_vertex_is_read_from_the_cache(
    section: dict[str, Any], model: str
) -> None:
    """They take no cache point at the top of the body: those of blocks stay."""
    async with CachingUpstream(at_top=False) as upstream:
        settings = {**section, "base_url": upstream.url, "models": [model]}
        environ = {"BYOK_KEY_BOX": "k"}
        async with running({"upstreams": {"box": settings}}, environ=environ) as editor:
            await ask_ten_times(editor, changes=False)
    assert len(upstream.refusals) == 1
    assert len(upstream.reads) == 10
    assert min(upstream.reads[2:]) >= 0.9


async def ask_ten_times(editor: Editor, *, changes: bool) -> list[Answer]:
    """Run an agent for ten turns; in the sixth, with `changes`, the editor differs."""
    agent = AgentClient(
        TOOLS,
        run=lambda number: {"content": "line of code\n" * 30},
        mode="CLI_AGENT",
        conversation_id="c-1",
        user_guidelines=GUIDELINES,
        selected_code="def old(): ...",
        path="a.py",
        agent_memories="Tests run with pytest.",
    )
    answers = [await agent.step(editor) for _ in range(5)]
    if changes:
        agent.fields |= {"path": "b.py", "agent_memories": "Use tabs."}
        agent.fields["tool_definitions"] = TOOLS[::-1]
    return answers + [await agent.step(editor) for _ in range(5)]


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize(("section", "model", "keyed"), CASES)
async def test_nine_tenths_of_an_agents_prompt_are_read_from_the_cache(
    section: dict[str, Any], model: str, keyed: bool, changes: bool
) -> None:
    async with CachingUpstream(keyed=keyed) as upstream:
        upstream.models = [model]
        settings = {**section, "base_url": upstream.url, "model": model}
        environ = {"BYOK_KEY_BOX": "k"}
        async with running({"upstreams": {"box": settings}}, environ=environ) as editor:
            answers = await ask_ten_times(editor, changes=changes)
    assert len(upstream.reads) == 10
    assert min(upstream.reads[2:]) >= 0.9
    counts = [
        node["token_usage"]
        for answer in answers[2:]
        for node in answer.nodes
        if node["type"] == 10
    ]
    assert len(counts) == 8
    for count in counts:
        assert count["cache_read_input_tokens"] >= 0.9 * count["input_tokens"]
