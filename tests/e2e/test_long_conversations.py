"""Conversations longer than the window are answered, turn after turn.

The upstream enforces its window and OpenAI's rules; how much of one request begins the
next one is what its prompt cache can use.
"""

import statistics
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.patience import PATIENCE
from tests.fakes.window import TASK, Talk, WindowedUpstream, shared_prefix


@dataclass
class Course:
    """How a conversation went."""

    shares: list[float]
    answers: list[Answer]

    @property
    def cuts(self) -> int:
        return sum(share < 1 for share in self.shares)

    def report(self, upstream: WindowedUpstream) -> str:
        kept = statistics.fmean(s for s in self.shares if s == 1) if self.shares else 0
        return (
            f"{len(self.answers)} turns, {upstream.overflows} overflows, "
            f"{len(upstream.refusals)} broken rules, {self.cuts} cuts, "
            f"{len(upstream.asked_summaries)} summaries, prefix reused "
            f"{statistics.fmean(self.shares):.1%} (without cuts {kept:.1%}), "
            f"tokens {min(upstream.sizes)} to {max(upstream.sizes)}"
        )


async def go(editor: Editor, upstream: WindowedUpstream, talk: Talk, n: int) -> Course:
    """Do n turns more, each with the result of one tool call."""
    answers: list[Answer] = []
    for _ in range(n):
        talk.step()
        answers.append(await editor.post("/chat-stream", talk.body()))
    taken = upstream.taken[-n:]
    return Course(
        [shared_prefix(one, other) for one, other in pairwise(taken)], answers
    )


def section(upstream: WindowedUpstream, **fields: Any) -> dict[str, Any]:
    kind = {"type": "openai", "dialect": "openai_chat"}
    own = {**kind, "base_url": upstream.url, "timeout": PATIENCE, **fields}
    return {"upstreams": {"fake": own}}


KEY = {"BYOK_KEY_FAKE": "k"}
IN_ONE_PIECE = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


def check(course: Course, upstream: WindowedUpstream) -> None:
    """Each turn was answered by a tool call, and nothing of importance was lost."""
    assert upstream.refusals == []
    for answer in course.answers:
        assert answer.status == 200
        assert "error" not in answer.last
        assert len(answer.tool_uses) == 1
    for body in upstream.taken:
        texts = [m["content"] or "" for m in body["messages"]]
        assert any(TASK in text for text in texts)
        assert body["messages"][-1]["role"] == "tool"
        assert len(body["messages"][-1]["content"]) >= 3000, "the newest is whole"


@pytest.mark.slow
@IN_ONE_PIECE
async def test_context_window_of_32k_with_200_exchanges() -> None:
    async with WindowedUpstream(32_768) as upstream:
        settings = {**section(upstream), "loops": {"on": False}}  # it is one turn
        async with running(settings, environ=KEY) as editor:
            course = await go(editor, upstream, Talk(200, 5000), 25)
    print(course.report(upstream))
    check(course, upstream)
    assert upstream.overflows == 1
    assert course.cuts <= 8
    assert len(upstream.asked_summaries) <= course.cuts
    assert statistics.fmean(course.shares) > 0.85


@pytest.mark.parametrize("configured", [0, 8192])
async def test_context_window_is_learned_and_kept_to(configured: int) -> None:
    async with WindowedUpstream(8192) as upstream:
        settings = section(upstream, context_window=configured)
        async with running(settings, environ=KEY) as editor:
            course = await go(editor, upstream, Talk(30, 3000), 12)
    check(course, upstream)
    assert upstream.overflows == (0 if configured else 1)
    assert 0 < course.cuts <= 6
    assert len(upstream.asked_summaries) >= 1


async def test_what_the_user_says_to_a_working_agent_outlives_what_is_cut() -> None:
    """Several times, beside results, where the editor sends its own context, too."""
    said = [f"Wait: keep test {n} as it is,\nand say why." for n in range(3)]
    async with WindowedUpstream(8192) as upstream:
        settings = section(upstream, context_window=8192)
        async with running(settings, environ=KEY) as editor:
            talk = Talk(30, 3000)
            for place, words in zip((3, 9, 15), said, strict=True):
                talk.history[place]["request_message"] = words
            course = await go(editor, upstream, talk, 12)
    check(course, upstream)
    assert upstream.asked_summaries
    for body in upstream.taken:
        texts = [m["content"] or "" for m in body["messages"] if m["role"] == "user"]
        assert [w for w in said if not any(w in text for text in texts)] == []
    assert course.cuts <= 6


async def test_a_long_answer_that_only_the_upstream_knows_of_is_made_room_for() -> None:
    async with WindowedUpstream(16_384) as upstream:
        upstream.answer = 7000
        upstream.words = (
            "This model's maximum context length is {window} tokens. However, you "
            "requested more ({tokens} in the messages, 7000 in the completion)."
        )
        settings = section(upstream, context_window=16_384)
        async with running(settings, environ=KEY) as editor:
            course = await go(editor, upstream, Talk(2, 3000), 40)
    check(course, upstream)
    assert 1 <= upstream.overflows <= 4


async def test_context_window_summary_by_the_small_model_that_may_fail() -> None:
    async with WindowedUpstream(8192) as upstream:
        settings = section(upstream, context_window=8192)
        settings["routing"] = {"models": {"small": "byok:fake:tiny"}}
        async with running(settings, environ=KEY) as editor:
            await go(editor, upstream, Talk(80, 3000), 1)
            [asked] = upstream.asked_summaries
            assert asked["model"] == "tiny"
            assert TASK in asked["messages"][-1]["content"]
            upstream.summary = ""
            course = await go(editor, upstream, Talk(81, 3100), 1)
    check(course, upstream)
    assert "The assistant called these tools: view" in str(upstream.taken[-1])


async def test_context_window_of_an_edited_history_gets_no_stale_summary() -> None:
    async with WindowedUpstream(8192) as upstream:
        settings = section(upstream, context_window=8192)
        async with running(settings, environ=KEY) as editor:
            talk = Talk(80, 3000)
            await editor.post("/chat-stream", talk.body())
            upstream.summary = "Now in Zig."
            words = "Port the cron parser to Zig instead."
            talk.history[0]["request_message"] = words
            await editor.post("/chat-stream", talk.body())
    first, second = (str(body["messages"]) for body in upstream.taken)
    assert "the lexer is done" in first
    assert "Now in Zig." in second
    assert words in second
    assert TASK not in second
    assert "the lexer is done" not in second
