"""Ten turns with each of today's upstreams, all in one daemon: every one stays alive.

The client keeps the nodes of answers, drops the reasoning or reorders them; the daemon
is restarted in the middle; and twice a turn goes to another upstream's model and the
next one back. Each upstream refuses what its vendor refuses.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any, Protocol, Self

import pytest

from tests.fakes.bodies import tool
from tests.fakes.clients import AgentClient, Keeping
from tests.fakes.daemon import Editor, running
from tests.fakes.messages_api import AnthropicAgent
from tests.fakes.strict_gemini import GeminiServer
from tests.fakes.strict_vendors import (
    VENDORS,
    OllamaAgent,
    RefusingUpstream,
    ResponsesAgent,
    StrictVendor,
)

TURNS = 10
AWAY = (2, 7)  # turns that go to another upstream's model
AWAY_BY = 7  # rows between the two; two servers of one vendor would share ids
LIVES = 2  # of the daemon
# They do not refuse a turn without its reasoning, but their models are weaker then.
REPLAYED = ("qwen", "qwen_elsewhere", "thinker", "siliconflow", "gateway")


class Server(Protocol):
    """A fake upstream."""

    url: str
    refusals: list[str]

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


@dataclass
class Case:
    """One upstream, and the conversation with it.

    Attributes:
        server: the fake.
        model: the model that is asked.
        section: its settings, without the address.
        tools: how many tools the client offers.
        picture: the first question has one.
        expected: what it may refuse, each once for each life of the daemon and each
            of the conversations that come to it.
    """

    server: Server
    model: str
    section: Mapping[str, Any] = field(default_factory=dict)
    tools: int = 2
    picture: bool = False
    expected: tuple[str, ...] = ()


def vendor(name: str, kind: str = "", *expected: str, **fields: Any) -> Case:
    """Return the case of a vendor with a Chat Completions API."""
    server, model = StrictVendor(name), VENDORS[name].model
    section = {"type": kind or name, "dialect": "openai_chat"}
    return Case(server, model, section, expected=expected, **fields)


def other(server: Server, model: str, *expected: str, **fields: Any) -> Case:
    """Return the case of a server that byok knows nothing about."""
    return Case(server, model, expected=expected, **fields)


def upstreams() -> dict[str, Case]:
    """Return all cases, by the name of the upstream in the settings."""
    sampling = {
        "temperature": "Unsupported value: 'temperature' does not support 0.2 with "
        "this model. Only the default (1) value is supported."
    }
    cool = {"type": "openai", "dialect": "openai_chat", "temperature": 0.2}
    gemini = {"type": "gemini"}
    minimax = vendor("minimax", "minimax", "tool_choice")
    assert isinstance(minimax.server, StrictVendor)
    # Nothing brings back what a client drops of a turn without calls, and the vendor
    # does not refuse it.
    minimax.server.rules = replace(minimax.server.rules, plain_turns=False)
    return {
        "deepseek_agent": vendor("deepseek"),
        "deepseek_chat": vendor("deepseek", tools=0),
        "kimi": vendor("moonshot"),
        "kimi_elsewhere": vendor("kimi-elsewhere", "vllm"),
        "glm": vendor("zai", "zai", "unknown variant `image_url`"),
        "minimax": minimax,
        "router_gemini": vendor("openrouter-gemini", "openrouter"),
        "router_claude": vendor("openrouter-claude", "openrouter"),
        "mistral": vendor("mistral"),
        "groq": vendor("groq"),
        "xai": vendor("xai"),
        "cerebras": vendor("cerebras"),
        "qwen": vendor("dashscope"),
        "qwen_elsewhere": vendor("qwen-elsewhere", "vllm"),
        "thinker": vendor("thinker", "openai_compatible"),
        "siliconflow": vendor("siliconflow"),
        "gateway": other(
            StrictVendor("siliconflow"), "caller", "content must be a string"
        ),
        "r1": vendor("deepseek-r1", "openai_compatible"),
        "gpt_chat": vendor("openai", "openai_compatible", "set reasoning_effort to"),
        "gpt": Case(ResponsesAgent(), "gpt-5.6", {"type": "openai"}),
        "codex": Case(ResponsesAgent(), "gpt-5.6-codex", {"type": "openai"}),
        "claude": Case(AnthropicAgent(), "claude-opus-5", {"type": "anthropic"}),
        "claude_budget": Case(
            AnthropicAgent(),
            "claude-sonnet-4-5",
            {"type": "anthropic", "effort": "medium"},
        ),
        "o_series": Case(RefusingUpstream(**sampling), "o4-mini", cool),
        "unknown_o": other(
            RefusingUpstream(**sampling), "thinker", "'temperature' does not support"
        ),
        "gemini_25": Case(GeminiServer(), "gemini-2.5-pro", gemini),
        "gemini_3": Case(GeminiServer(calls=2), "gemini-3.6-flash", gemini),
        "gemini_compatible": vendor("gemini"),
        "ollama": Case(OllamaAgent(), "coder", {"type": "ollama"}),
        "text_only": other(
            StrictVendor("cerebras"), "writer", "unknown variant", picture=True
        ),
        "many_tools": other(
            StrictVendor("groq"), "caller", "array too long", tools=140
        ),
        "plain": other(
            RefusingUpstream(tools="This model does not support tools."),
            "talker",
            "not support tools",
        ),
    }


@pytest.fixture
async def cases() -> AsyncIterator[dict[str, Case]]:
    async with AsyncExitStack() as stack:
        found = upstreams()
        for case in found.values():
            await stack.enter_async_context(case.server)
        yield found


def settings(cases: Mapping[str, Case]) -> dict[str, Any]:
    sections = {
        name: {
            "base_url": case.server.url,
            "models": [case.model],
            "timeout": 20,
            **case.section,
        }
        for name, case in cases.items()
    }
    return {"upstreams": sections}


async def talk(
    editor: Editor, agent: AgentClient, models: tuple[str, ...], turns: range
) -> None:
    """Ask the first model, and in some turns the second one."""
    keeping = cycle(Keeping)
    for turn in turns:
        model = models[turn in AWAY]
        answer = await agent.turn(editor, model, next(keeping))
        said = answer.text.partition("\n[byok]")[0]
        assert said.startswith(("Answer", "Done.", "Fine.")), (model, turn, answer.text)


@pytest.mark.slow
async def test_every_vendor_stays_alive_for_ten_turns(cases: dict[str, Case]) -> None:
    assert len(cases) >= 24
    names = [*cases]
    others = names[AWAY_BY:] + names[:AWAY_BY]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools = [tool(f"view-{n}", schema) for n in range(140)]
    agents = {
        name: AgentClient(tools[: case.tools], picture=case.picture)
        for name, case in cases.items()
    }
    keys = {f"BYOK_KEY_{name.upper()}": "k" for name in names}
    problems: list[str] = []
    for turns in (range(TURNS // LIVES), range(TURNS // LIVES, TURNS)):
        async with running(settings(cases), environ=keys) as editor:
            talks = []
            for name, another in zip(names, others, strict=True):
                models = tuple(f"byok:{n}:{cases[n].model}" for n in (name, another))
                talks.append(talk(editor, agents[name], models, turns))
            ended = await asyncio.gather(*talks, return_exceptions=True)
            problems += [
                f"{n}: {end}" for n, end in zip(names, ended, strict=True) if end
            ]
    assert not problems, "\n".join(problems)
    for name, case in cases.items():
        check(name, case)


def check(name: str, case: Case) -> None:
    """Check that nothing was refused twice, and that what must come back came back."""
    refusals = [*case.server.refusals]
    for words in case.expected:
        found = [reason for reason in refusals if re.search(words, reason)]
        assert len(found) <= 2 * LIVES, (name, found)
        refusals = [reason for reason in refusals if reason not in found]
    assert refusals == [], name
    match case.server:
        case StrictVendor() as server if server.rules.tool_turns or name in REPLAYED:
            assert server.replayed > 0, name
        case GeminiServer() | ResponsesAgent() | AnthropicAgent() as server:
            assert server.lost == [], name
        case OllamaAgent() as server:
            assert server.cuts == [], name
        case _:
            pass
