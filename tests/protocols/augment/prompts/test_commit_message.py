"""Commit messages: what of a diff is shown, and what is kept of the answer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.prompts.commit_message import (
    MAX_DIFF,
    MIN_FILE,
    decode,
    shorten_diff,
)
from tests.fakes.jobs import PLAIN, events, streamed, texts

DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def asked(**body: Any) -> str:
    return texts(decode(body, PLAIN).chat)


def test_commit_message_prompt_has_the_diff_the_counts_and_the_samples() -> None:
    shown = asked(
        diff=DIFF,
        changed_file_stats={"modified_file_stats": {"changed_file_count": 1}},
        relevant_commit_messages=["x: add y"],
        generatedCommitMessageSubrequest={"example_commit_messages": ["docs: z"]},
    )
    assert DIFF in shown
    assert "1 modified" in shown
    assert shown.index("x: add y") < shown.index("docs: z") < shown.index("+b")


@pytest.mark.parametrize("diff", ["", " \n", None, [], {}])
def test_commit_message_without_a_diff_asks_nobody(diff: Any) -> None:
    job = decode({"diff": diff}, PLAIN)
    assert job.chat.messages == ()
    ran = streamed(decode, {"diff": ""}, [])
    assert (ran.text, ran.error) == ("", None)
    assert ran.lines[-1]["stop_reason"] == 1


def test_commit_message_is_the_trimmed_answer() -> None:
    ran = streamed(
        decode, {"diff": DIFF}, events("```\n\nFix ", "x\n\n", "- y\n``", "`")
    )
    assert ran.text == "Fix x\n\n- y"


def test_commit_message_diff_shows_the_beginning_of_each_file() -> None:
    files = [f"diff --git a/{n} b/{n}\n" + f"+{n}\n" * 20_000 for n in range(4)]
    shown = shorten_diff("".join(files))
    assert len(shown) <= MAX_DIFF + 100
    assert [f"diff --git a/{n} " in shown for n in range(4)] == [True] * 4
    assert shown.count("[the rest of this file left out]") == 4


def test_commit_message_diff_gives_room_of_small_files_to_a_large_one() -> None:
    large = "diff --git a/x b/x\n" + "+a line of it\n" * 20_000
    small = "".join(f"diff --git a/{n} b/{n}\n+x\n" for n in range(30))
    for diff in (large + small, small + large):
        shown = shorten_diff(diff)
        assert shown.count("+x\n") == 30
        assert MAX_DIFF * 0.9 < len(shown) <= MAX_DIFF + 100


@pytest.mark.parametrize(
    "answer",
    [
        "Here is a commit message:\n\nFix it\n\n- x",
        "Commit message:\n```\nFix it\n\n- x\n```\nIt is short.",
        '"Fix it\n\n- x"',
        "Sure! Here it is:\n\n`Fix it\n\n- x`\n",
    ],
)
def test_nothing_stands_around_the_message(answer: str) -> None:
    assert streamed(decode, {"diff": DIFF}, events(*answer)).text == "Fix it\n\n- x"


@given(st.text(alphabet="dif -gI:+x\n", max_size=400), st.integers(50, 200))
def test_commit_message_diff_stays_within_its_limit(diff: str, limit: int) -> None:
    shown = shorten_diff("diff --git " + diff * 20, limit)
    assert len(shown) <= limit + MIN_FILE
