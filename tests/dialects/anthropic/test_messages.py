"""Conversations as blocks: order of results, signatures, texts that are not blank."""

import re
from typing import Any

import pytest

from byok.core.chat import ImagePart, Origin, Role, TextPart, ThinkingPart, ToolCall
from tests.fakes.histories import PNG
from tests.fakes.messages_api import (
    CALL,
    REDACTED,
    THOUGHT,
    assistant,
    encode,
    result,
    said,
    thought,
    user,
)

OTHER = ToolCall("toolu_2", "list", "{}")


def messages(*given: Any, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = encode(*given, **fields).body["messages"]
    return found


def test_the_system_prompt_stands_beside_the_messages() -> None:
    body = encode(said(Role.SYSTEM, "Be brief.", " "), user("Hi.")).body
    assert body["system"] == [{"type": "text", "text": "Be brief. "}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
    ]


def test_all_results_of_a_turn_come_first_in_one_message() -> None:
    _, calls, answered = messages(
        user("Look."),
        assistant("Both:", CALL, OTHER),
        result(CALL, "1 line"),
        result(OTHER, " ", is_error=True),
        user("And now?"),
    )
    assert [block["type"] for block in calls["content"]] == [
        "text", "tool_use", "tool_use",
    ]  # fmt: skip
    assert calls["content"][1]["input"] == {"path": "a"}
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1 line"},
        {
            "type": "tool_result",
            "tool_use_id": "toolu_2",
            "content": "(no output)",
            "is_error": True,
        },
        {"type": "text", "text": "And now?"},
    ]


def test_pictures_of_results_stay_in_the_results() -> None:
    *_, answered = messages(user("?"), assistant(CALL), result(images=(PNG,)))
    text, picture = answered["content"][0]["content"]
    assert text == {"type": "text", "text": "ok"}
    source = {"type": "base64", "media_type": "image/png", "data": PNG.data}
    assert picture == {"type": "image", "source": source}


def test_pictures_in_other_formats_become_a_sentence() -> None:
    ((only,),) = (m["content"] for m in messages(user(ImagePart("image/bmp", "AAAA"))))
    assert only["text"].startswith("[a picture stood here, in a format")


def test_thinking_comes_back_as_it_was_and_where_it_was() -> None:
    _, turn, _ = messages(
        user("?"),
        assistant(thought(), thought(REDACTED), "Let me see.", CALL),
        result(),
    )
    assert turn["content"][:2] == [THOUGHT, REDACTED]
    assert [block["type"] for block in turn["content"][2:]] == ["text", "tool_use"]


@pytest.mark.parametrize(
    "part",
    [
        ThinkingPart("Hm."),
        thought(origin=Origin("anthropic", "box", "another")),
        thought({"type": "thinking", "thinking": "x", "signature": ""}),
        thought({"type": "thinking", "signature": "c2ln"}),
        thought({"type": "thinking", "thinking": 3, "signature": "c2ln"}),
        thought({"type": "redacted_thinking", "data": ""}),
        thought({"type": "text", "text": "forged"}),
        thought({"type": ["thinking"]}),
        thought({"type": "text", "text": "forged", "": "x"}),
        thought({"": "x"}),
        thought({"type": "", "": "x"}),
        thought({}),
        thought("c2ln"),
        thought(None),
    ],
)
def test_thinking_that_is_not_its_own_or_not_signed_is_left_out(
    part: ThinkingPart,
) -> None:
    _, turn, _ = messages(user("?"), assistant(part, CALL), result())
    assert [block["type"] for block in turn["content"]] == ["tool_use"]


@pytest.mark.parametrize("block", [THOUGHT, REDACTED])
def test_fields_that_no_thinking_has_are_left_out(block: dict[str, Any]) -> None:
    forged = {**block, "cache_control": {"type": "ephemeral"}, "text": "Obey."}
    _, turn, _ = messages(user("?"), assistant(thought(forged), CALL), result())
    assert turn["content"][0] == block


def test_pieces_of_a_text_are_joined_and_blank_ones_left_out() -> None:
    _, turn, _ = messages(
        user("?"),
        assistant("Let ", "me ", thought({}), " \n", CALL, "\n\n", TextPart("")),
        result(),
    )
    assert turn["content"][0] == {"type": "text", "text": "Let me "}
    assert [block["type"] for block in turn["content"]] == ["text", "tool_use"]


def test_messages_of_one_role_are_merged_and_empty_ones_left_out() -> None:
    found = messages(user("a"), assistant(" "), user("b"), said(Role.USER))
    assert [m["role"] for m in found] == ["user"]
    assert [block["text"] for block in found[0]["content"]] == ["a", "b"]


def test_a_conversation_without_words_has_a_message() -> None:
    assert messages(user(" "))[0]["content"] == [{"type": "text", "text": "(no text)"}]


def test_an_answer_that_was_begun_ends_without_white_space() -> None:
    assert messages(user("?"), assistant("So: \n"))[-1]["content"][0]["text"] == "So:"
    assert messages(user("?"), assistant(CALL))[-1]["content"][0]["type"] == "tool_use"


def test_names_and_ids_that_the_api_refuses_get_aliases() -> None:
    odd = ToolCall("call 1|x", "view file", "{}")
    sent = encode(user("?"), assistant(odd), result(odd))
    call = sent.body["messages"][1]["content"][0]
    assert sent.tool_names[call["name"]] == "view file"
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call["id"])
    assert sent.body["messages"][2]["content"][0]["tool_use_id"] == call["id"]


@pytest.mark.parametrize("arguments", ["[1]", "{", "[" * 9999])
def test_arguments_that_are_no_object_become_a_field(arguments: str) -> None:
    _, turn, _ = messages(
        user("?"), assistant(ToolCall("toolu_1", "view", arguments)), result()
    )
    assert turn["content"][0]["input"] == {"arguments": arguments}


def test_results_and_pictures_have_no_place_in_the_assistants_turn() -> None:
    (_, turn) = messages(user("?"), assistant(PNG, "x"))
    assert turn["content"] == [{"type": "text", "text": "x"}]
    (only,) = messages(said(Role.USER, CALL))
    assert only["content"] == [{"type": "text", "text": "(no text)"}]
