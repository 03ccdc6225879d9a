"""What is changed after a refusal in the API's own words."""

from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Sampling,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from byok.dialects.anthropic.remedies import REMEDIES
from byok.dialects.base import UpstreamRequest
from byok.dialects.error_bodies import refusal_of
from byok.dialects.families import family_facts
from byok.dialects.model_facts import ModelFacts
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    change_body,
    find_remedy,
    rewrite_chat,
)
from tests.fakes.histories import PNG
from tests.fakes.messages_api import (
    ADAPTIVE,
    BUDGET,
    CALL,
    REDACTED,
    THOUGHT,
    assistant,
    encode,
    result,
    thought,
    user,
)

TOOLS = (ToolDefinition("view", "See.", {"type": "object"}),)
TURN = (user("?"), assistant(thought(), CALL), result())
PREFIX = "messages.1.content.0.type: "
ORDER = "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `think"


def find(body: Any, message: str, known: tuple[Remedy, ...] = ()) -> Remedy | None:
    error = refusal_of({"type": "error", "error": {"message": message}}, 400)
    return find_remedy(REMEDIES, RefusedRequest(body, error, known=known))


def after(
    sent: UpstreamRequest | dict[str, Any], message: str
) -> tuple[dict[str, Any], str]:
    """Give the changed body and the notice."""
    body = sent.body if isinstance(sent, UpstreamRequest) else sent
    remedy = find(body, message)
    assert remedy
    chat = ChatRequest((), agent=True)
    changed, notices = change_body(REMEDIES, body, [remedy], new=[remedy], chat=chat)
    assert changed != body
    return changed, " ".join(notices)


def asked(effort: str = "high", *history: Message, facts: Any = BUDGET) -> Any:
    history = history or (user("?"),)
    return encode(*history, facts=facts, sampling=Sampling(effort=effort))


def test_max_tokens_falls_to_the_room_that_the_prompt_leaves() -> None:
    text = (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, "
        "decrease input length or `max_tokens` and try again"
    )
    sent = encode(user("?"), sampling=Sampling(max_tokens=21_333))
    assert after(sent, text)[0]["max_tokens"] == 11_760
    full = text.replace("188240", "199900")
    assert find(sent.body, full) is None
    small = encode(user("?"), sampling=Sampling(max_tokens=100)).body
    known = [Remedy("room", "max_tokens", "11760")]
    assert change_body(REMEDIES, small, known)[0] == small


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_sampling_that_is_deprecated_is_dropped(name: str) -> None:
    sent = encode(user("?"), extra={name: 0.5})
    assert name not in after(sent, f"`{name}` is deprecated for this model.")[0]


def test_of_both_sampling_parameters_the_temperature_stays() -> None:
    sent = encode(user("?"), extra={"temperature": 0.5, "top_p": 0.5})
    text = "`temperature` and `top_p` cannot both be specified for this model."
    changed, _ = after(sent, text)
    assert ("temperature" in changed, "top_p" in changed) == (True, False)


def test_thinking_in_a_turn_that_began_without_it_is_switched_off() -> None:
    sent = asked()
    sent.body["messages"] = encode(user("?"), assistant(CALL), result()).body[
        "messages"
    ]
    assert "thinking" not in after(sent, PREFIX + ORDER)[0]


DEEPSEEK = family_facts("deepseek-v4-pro")


def test_models_that_think_unasked_get_their_reasoning_back() -> None:
    turn = (user("?"), assistant(thought(THOUGHT), CALL), result())
    sent = encode(*turn, facts=DEEPSEEK).body
    assert sent["messages"][1]["content"][0]["type"] == "thinking"
    assert "thinking" not in sent
    asked: tuple[dict[str, Any], ...] = (
        {"sampling": Sampling(effort="none")},
        {"tool_choice": ToolChoice(ToolUse.REQUIRED), "tools": TOOLS},
    )
    for fields in asked:
        sent = encode(*turn, facts=DEEPSEEK, **fields).body
        assert sent["thinking"] == {"type": "disabled"}
        assert sent["messages"][1]["content"][0]["type"] == "tool_use"


def test_reasoning_that_is_gone_is_not_asked_back() -> None:
    text = "The `content[].thinking` in the thinking mode must be passed back."
    turns = (assistant(thought(), CALL), result(), assistant("So."), user("?"))
    sent = encode(user("?"), *turns, facts=DEEPSEEK)
    changed, notice = after(sent, text)
    assert changed["thinking"] == {"type": "disabled"}
    assert changed["messages"][1]["content"][0]["type"] == "tool_use"
    assert "does not think" in notice
    assert find(encode(user("?"), facts=DEEPSEEK).body, text) is None


def test_a_budget_becomes_adaptive_where_only_that_is_taken() -> None:
    text = (
        '"thinking.type.enabled" is not supported for this model. Use '
        '"thinking.type.adaptive" and "output_config.effort" to control thinking.'
    )
    changed, _ = after(asked(), text)
    assert changed["thinking"] == {"type": "adaptive"}
    plain = encode(user("?")).body
    assert change_body(REMEDIES, plain, [Remedy("adaptive")])[0] == plain


def test_adaptive_thinking_becomes_a_budget_where_it_is_not_taken() -> None:
    text = "adaptive thinking is not supported on this model"
    changed, _ = after(asked(facts=ADAPTIVE), text)
    assert changed["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    for turn in (TURN, (user("?"), assistant("Begun"))):
        assert "thinking" not in after(asked("high", *turn, facts=ADAPTIVE), text)[0]
    plain = encode(user("?")).body
    assert change_body(REMEDIES, plain, [Remedy("budget")])[0] == plain


def test_a_refused_effort_becomes_the_nearest_one_that_is_taken() -> None:
    efforts = ("low", "medium", "high", "xhigh", "max")
    facts = ModelFacts("m", thinking=True, adaptive_thinking=True, efforts=efforts)
    text = "output_config.effort: Input should be 'low', 'medium' or 'high'"
    changed, _ = after(asked("max", facts=facts), text)
    assert changed["output_config"] == {"effort": "high"}
    changed, _ = after(asked("max", facts=facts), "output_config.effort: unknown field")
    assert "output_config" not in changed


ALWAYS = (
    '"thinking.type.disabled" is not supported for this model. Use '
    '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (ALWAYS, {"output_config": {"effort": "low"}}),
        ('"thinking.type.disabled" is not supported for this model.', {}),
        (
            '"thinking.type.disabled" is not supported for this model. Use '
            '"thinking.type.between_tools" instead.',
            {"thinking": {"type": "between_tools"}},
        ),
    ],
    ids=["effort", "unnamed", "between_tools"],
)
def test_a_model_that_always_thinks_thinks_least_where_it_should_not(
    text: str, fields: dict[str, Any]
) -> None:
    sent = asked("none", facts=ADAPTIVE)
    names = ("thinking", "output_config")
    assert {k: v for k, v in after(sent, text)[0].items() if k in names} == fields
    # What one background job taught takes no thinking from the chats.
    remedy, chat = find(sent.body, text), asked("", facts=ADAPTIVE).body
    assert remedy and change_body(REMEDIES, chat, [remedy])[0] == chat


def test_the_display_of_thoughts_is_dropped_where_it_is_unknown() -> None:
    text = "thinking.adaptive.display: Extra inputs are not permitted"
    changed, _ = after(asked(facts=ADAPTIVE), text)
    assert changed["thinking"] == {"type": "adaptive"}


# Thinking blocks that are refused, and those that stay


NEXT = ToolCall("toolu_2", "view", "{}")
LATER = {**THOUGHT, "signature": "bGF0ZXI="}
TALK = (
    user("?"),
    assistant(thought(REDACTED), thought(), CALL),
    result(),
    assistant(thought(LATER), NEXT),
    result(NEXT),
)


def find_in_talk(message: str) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, 400)
    return find_remedy(REMEDIES, RefusedRequest(encode(*TALK).body, error))


def kinds(remedy: Remedy) -> list[str]:
    body, notices = change_body(REMEDIES, encode(*TALK).body, [remedy], new=[remedy])
    assert notices == ()
    return [b["type"] for m in body["messages"] for b in m["content"]][1:]


@pytest.mark.parametrize(
    "text",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest "
        "assistant message cannot be modified.",
    ],
)
def test_the_message_that_is_named_loses_its_thinking(text: str) -> None:
    remedy = find_in_talk(text)
    assert remedy
    left = ["tool_use", "tool_result", "thinking", "tool_use", "tool_result"]
    assert kinds(remedy) == left


@pytest.mark.parametrize("place", ["", "messages.3.content.0: "])
def test_all_thinking_up_to_the_last_refused_block_goes(place: str) -> None:
    remedy = find_in_talk(f"{place}Invalid `signature` in `thinking` block")
    assert remedy
    assert kinds(remedy) == ["tool_use", "tool_result"] * 2


def test_other_conversations_keep_their_thinking() -> None:
    body = encode(user("?"), assistant(thought(), CALL), result()).body
    other = Remedy("signature", "", "of another block")
    assert change_body(REMEDIES, body, [other])[0] == body


# A picture is known by its bytes, so that it is replaced in later requests, too


SMALL = ImagePart("image/png", "AAAA")


def find_in_messages(message: str, *messages: Message) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, 400)
    body = encode(*messages).body
    return find_remedy(
        REMEDIES, RefusedRequest(body, error, chat=ChatRequest(messages))
    )


def test_only_the_same_picture_is_replaced_wherever_it_is() -> None:
    place = "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"
    remedy = find_in_messages(place, user("?", PNG, "b", SMALL))
    assert remedy
    later = ChatRequest((user("?", SMALL, "b", PNG), assistant("Yes."), user("!")))
    changed, (notice,) = rewrite_chat(REMEDIES, later, [remedy], new=[remedy])
    question, *others = changed.messages
    assert question.parts[:2] == (TextPart("?"), SMALL)
    assert [type(part) for part in question.parts[2:]] == [TextPart]
    assert (*others,) == later.messages[1:]
    assert "A picture is too large" in notice


def test_a_large_picture_of_a_result_becomes_a_sentence_below_it() -> None:
    place = "messages.2.content.0.tool_result.content.1.image.source: image exceeds 5"
    messages = (user("?"), assistant(CALL), result(images=(PNG, SMALL)))
    remedy = find_in_messages(place, *messages)
    assert remedy
    changed, _ = rewrite_chat(REMEDIES, ChatRequest(messages), [remedy])
    (part,) = changed.messages[2].parts
    assert isinstance(part, ToolResult) and part.images == (SMALL,)
    assert part.content.startswith("ok\n\n[a picture stood here; it is too large")


@pytest.mark.parametrize(
    "message",
    [
        "image exceeds 5 MB maximum",
        "messages.9.content.1: image exceeds 5 MB maximum",
    ],
)
def test_without_the_place_of_a_large_picture_nothing_is_changed(message: str) -> None:
    assert find_in_messages(message, user("?", PNG)) is None
