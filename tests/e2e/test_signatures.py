"""Agents on a model that signs its tool calls, from the first step to the last."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.agent_client import AgentClient
from tests.fakes.daemon import running
from tests.fakes.signed import SKIPPED, SignedUpstream

MODEL = "gemini-3.6-flash"


@pytest.fixture
async def signed() -> AsyncIterator[SignedUpstream]:
    async with SignedUpstream() as upstream:
        yield upstream


def settings(signed: SignedUpstream) -> dict[str, Any]:
    models = [MODEL, "gemini-3-pro", "gemini-2.5-pro", "gemma-4"]
    section = {
        "type": "gemini",
        "dialect": "openai_chat",
        "base_url": signed.url,
        "models": models,
        "timeout": 5,
    }
    return {"upstreams": {"gemini": section}}


def sent_back(signed: SignedUpstream) -> list[Any]:
    """What the newest request had beside each of its tool calls."""
    messages = signed.requests[-1]["messages"]
    calls = [call for m in messages for call in m.get("tool_calls", ())]
    return [call.get("extra_content") for call in calls]


KEY = {"BYOK_KEY_GEMINI": "k"}


@pytest.mark.parametrize("parallel", [1, 2])
async def test_signatures_let_an_agent_on_gemini_3_finish(
    signed: SignedUpstream, parallel: int
) -> None:
    signed.calls, signed.steps = parallel, 3 * parallel
    agent = AgentClient()
    async with running(settings(signed), environ=KEY) as editor:
        answers = [await agent.step(editor, f"byok:gemini:{MODEL}") for _ in range(4)]
    assert signed.refusals == []
    assert answers[-1].text == "Done."
    first_calls = sent_back(signed)[::parallel]
    assert first_calls == [extra for _, extra in signed.issued]


@pytest.mark.parametrize("is_lost", [False, True])
async def test_signatures_outlive_a_restart_or_a_documented_value_stands_for_them(
    signed: SignedUpstream, is_lost: bool
) -> None:
    agent = AgentClient()
    async with running(settings(signed), environ=KEY) as editor:
        await agent.step(editor, f"byok:gemini:{MODEL}")
    if is_lost:
        find_paths().provider_data.unlink()
    async with running(settings(signed), environ=KEY) as editor:
        await agent.step(editor, f"byok:gemini:{MODEL}")
        await agent.step(editor, f"byok:gemini:{MODEL}")
    assert signed.refusals == []
    first, second = (extra for _, extra in signed.issued[:2])
    assert sent_back(signed) == [SKIPPED if is_lost else first, second]


async def test_no_model_gets_the_signatures_of_another(
    signed: SignedUpstream,
) -> None:
    agent = AgentClient()
    async with running(settings(signed), environ=KEY) as editor:
        await agent.step(editor, f"byok:gemini:{MODEL}")
        await agent.step(editor, "byok:gemini:gemini-3-pro")
        assert sent_back(signed) == [SKIPPED]
        for older in ("gemini-2.5-pro", "gemma-4"):
            await agent.step(editor, f"byok:gemini:{older}")
            assert set(sent_back(signed)) == {None}
