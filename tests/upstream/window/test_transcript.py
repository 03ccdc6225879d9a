"""A conversation as text: everything in it, and never longer than wanted."""

from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import Message, Role, TextPart, ThinkingPart, ToolCall, ToolResult
from byok.core.prompts.prompt_set import shipped_prompts
from byok.core.routing import SUMMARY_HOLDS
from byok.upstream.window.transcript import (
    instruction,
    outline,
    summary_message,
    transcript,
)
from tests.fakes.histories import PNG, agent, histories, step

TALK = (
    Message(Role.USER, (TextPart("Fix it."), PNG)),
    Message(
        Role.ASSISTANT,
        (ThinkingPart("Hm."), TextPart("I look."), ToolCall("c", "view", '{"a": 1}')),
    ),
    *step(7, "2 failed"),
)


def test_transcript_names_who_said_and_did_what() -> None:
    assert transcript(TALK, 5000).splitlines() == [
        "User: Fix it.",
        "User: (a picture)",
        "Assistant: I look.",
        'Assistant calls view: {"a": 1}',
        'Assistant calls view: {"path": "src/7.rs"}',
        "Result of view: 2 failed",
    ]


@settings(max_examples=150)
@given(histories(), st.integers(2000, 20_000))
def test_transcript_is_about_as_long_as_requested(
    body: tuple[Message, ...], longest: int
) -> None:
    assert len(transcript(body, longest)) <= longest
    assert len(outline(body, longest)) <= longest


def test_transcript_mentions_errors_and_images_of_results() -> None:
    failed = ToolResult("c", "view", "No.", is_error=True)
    shown = ToolResult("d", "open", "Opened.", images=(PNG,))
    found = [Message(Role.TOOL, (part,)) for part in (failed, shown)]
    assert transcript(found, 5000).splitlines() == [
        "Error of view: No.",
        "Result of open (with a picture): Opened.",
    ]


def test_summary_instruction_says_what_to_keep_and_how_long() -> None:
    told = instruction(7000, shipped_prompts())
    assert SUMMARY_HOLDS in told
    assert "at most 1000 words" in told


def test_transcript_begins_with_the_summary_and_leaves_out_middle_steps() -> None:
    words = [Message(Role.USER, (TextPart(f"w{n}"),)) for n in range(999)]
    told = transcript((summary_message("Half is done.", ()), *words), 2000)
    first, *_, last = told.splitlines()
    assert (first, last) == (
        "Summary of what was before: Half is done.",
        "User: w998",
    )
    assert len(told) <= 2000


def test_outline_without_a_model_lists_words_and_tools() -> None:
    body = (*agent(3, 10, task="Port  it\nnow."), *TALK)
    assert outline(body, 5000) == (
        "The user said:\n- Port it now.\n- Fix it.\n\n"
        "The assistant called these tools: view (5)."
    )
