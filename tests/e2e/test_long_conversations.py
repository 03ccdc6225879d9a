"""Conversations longer than the window are answered, turn after turn.

The upstream enforces its window and OpenAI's rules; a request that does not begin with
the one before it was cut anew, and its prompt cache is lost.
"""

from itertools import pairwise
from typing import Any

import pytest

from tests.fakes.daemon import running
from tests.fakes.patience import PATIENCE
from tests.fakes.window import TASK, Talk, WindowedUpstream


async def go(
    upstream: WindowedUpstream, talk: Talk, turns: int, window: int, **sections: Any
) -> int:
    """Do more turns, each with the result of one tool call; return how many cut anew.

    Each turn is answered by a tool call, and nothing of importance is lost.
    """
    section = {
        "type": "openai",
        "dialect": "openai_chat",
        "base_url": upstream.url,
        "timeout": PATIENCE,
        "context_window": window,
    }
    settings: dict[str, Any] = {"upstreams": {"fake": section}, **sections}
    async with running(settings, environ={"BYOK_KEY_FAKE": "k"}) as editor:
        for _ in range(turns):
            talk.step()
            answer = await editor.post("/chat-stream", talk.body())
            assert answer.status == 200
            assert "error" not in answer.last
            assert len(answer.tool_uses) == 1
    assert upstream.refusals == []
    asked = [body["messages"] for body in upstream.taken]
    for messages in asked:
        assert any(TASK in (message["content"] or "") for message in messages)
        assert messages[-1]["role"] == "tool"
        assert len(messages[-1]["content"]) >= 3000, "the newest is whole"
    return sum(after[: len(before)] != before for before, after in pairwise(asked))


@pytest.mark.parametrize("configured", [0, 8192])
async def test_context_window_is_learned_and_kept_to(configured: int) -> None:
    async with WindowedUpstream(8192) as upstream:
        cuts = await go(upstream, Talk(30, 3000), 12, configured)
    assert upstream.overflows == (0 if configured else 1)
    assert 0 < cuts <= 6
    assert upstream.summaries


async def test_what_the_user_says_to_a_working_agent_outlives_what_is_cut() -> None:
    """Several times, beside results, where the editor sends its own context, too."""
    said = [f"Wait: keep test {n} as it is,\nand say why." for n in range(3)]
    talk = Talk(30, 3000)
    for place, words in zip((3, 9, 15), said, strict=True):
        talk.history[place]["request_message"] = words
    async with WindowedUpstream(8192) as upstream:
        assert await go(upstream, talk, 12, 8192) <= 6
    assert upstream.summaries
    for body in upstream.taken:
        texts = [m["content"] or "" for m in body["messages"] if m["role"] == "user"]
        assert [w for w in said if not any(w in text for text in texts)] == []


async def test_a_long_answer_that_only_the_upstream_knows_of_is_made_room_for() -> None:
    async with WindowedUpstream(16_384) as upstream:
        upstream.answer = 7000
        upstream.words = (
            "This model's maximum context length is {window} tokens. However, you "
            "requested more ({tokens} in the messages, 7000 in the completion)."
        )
        await go(upstream, Talk(2, 3000), 40, 16_384)
    assert 1 <= upstream.overflows <= 4


async def test_the_small_model_writes_the_summaries() -> None:
    models = {"small": "byok:fake:tiny"}
    async with WindowedUpstream(8192) as upstream:
        await go(upstream, Talk(80, 3000), 1, 8192, routing={"models": models})
    [asked] = upstream.summaries
    assert asked["model"] == "tiny"
    assert TASK in asked["messages"][-1]["content"]
    assert "the lexer is done" in str(upstream.taken[-1])
