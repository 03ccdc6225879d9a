"""Chat Completions as clients speak it: bodies read, answers written."""

from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Origin,
    ProviderData,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolUse,
)
from byok.core.errors import BadRequest
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.core.wire.encrypted_content import read_encrypted, write_encrypted
from byok.core.wire.sse import DONE
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.chat_completions import (
    CompletionReply,
    add_message,
    decode_completion,
    write_usage,
)
from byok.protocols.v1.turns import Turns, write_freeform

DATA = ProviderData(Origin("anthropic", "box", "m"), {"signature": "s"})

FILE = {"filename": "a.txt", "file_data": "data:text/plain;base64,w6Q="}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

PNG = ImagePart("image/png", "AAAA")

HELLO = {"role": "user", "content": "Hi."}


def read(*messages: dict[str, Any]) -> tuple[Message, ...]:
    turns = Turns()
    for message in messages:
        add_message(turns, message)
    return turns.messages()


def test_messages_of_all_roles() -> None:
    function = {"name": "view", "arguments": '{"a":1}'}
    custom = {"name": "patch", "input": "***"}
    calls = [
        {"id": "1", "type": "function", "function": function},
        {"id": "2", "type": "custom", "custom": custom},
    ]
    shown = [{"type": "text", "text": "See"}, PICTURE]
    assert read(
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "text", "text": "Be good."}]},
        {"role": "user", "content": [*shown, {"type": "file", "file": FILE}]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": shown},
        {"role": "tool", "tool_call_id": "2", "content": "done"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "refusal": "Never."},
    ) == (
        Message(Role.SYSTEM, (TextPart("Be brief.\n\nBe good."),)),
        Message(Role.USER, (TextPart("See"), PNG, TextPart("\na.txt\nä\n"))),
        Message(
            Role.ASSISTANT,
            (
                ToolCall("1", "view", '{"a":1}'),
                ToolCall("2", "patch", '{"input":"***"}'),
            ),
        ),
        Message(
            Role.TOOL,
            (ToolResult("1", "view", "See\n[image 1 below]", images=(PNG,)),),
        ),
        Message(Role.TOOL, (ToolResult("2", "patch", "done"),)),
        Message(Role.ASSISTANT, (TextPart("No."),)),
        Message(Role.USER, (TextPart("Why?"),)),
        Message(Role.ASSISTANT, (TextPart("Never."),)),
    )


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, []),
        ({"reasoning_content": "hm"}, [ThinkingPart("hm")]),
        ({"reasoning": "hm"}, [ThinkingPart("hm")]),
        (
            {
                "reasoning_content": "hm",
                "reasoning_details": [
                    {"text": "h", "data": write_encrypted(DATA)},
                    {"text": "m", "data": "of another server"},
                ],
            },
            [ThinkingPart("h", DATA), ThinkingPart("m")],
        ),
    ],
)
def test_messages_reasoning_comes_back(
    fields: dict[str, Any], thinking: list[ThinkingPart]
) -> None:
    (_, answer) = read(HELLO, {"role": "assistant", "content": "Hi.", **fields})
    assert answer.parts == (*thinking, TextPart("Hi."))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "king", "content": "x"}, "role must be"),
        ({"role": "user", "content": 1}, "content must be"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "input_audio"),
        ({"role": "assistant", "tool_calls": [{"id": ""}]}, "id of a tool call"),
    ],
)
def test_messages_that_cannot_be_read_are_refused(
    message: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        read(message)


HI = {"messages": [{"role": "user", "content": "Hi."}]}

TOOLS = [
    {"type": "function", "function": {"name": "view", "description": "See."}},
    {"type": "custom", "custom": {"name": "patch"}},
]


def chat(**fields: Any) -> ChatRequest:
    return decode_completion({**HI, **fields}).chat


def test_request_settings() -> None:
    asked = chat(
        temperature=0.5,
        top_p=1,
        max_tokens=7,
        reasoning_effort="low",
        stop="END",
        response_format={"type": "json_object"},
        prompt_cache_key="talk",
    )
    assert asked.sampling == Sampling(0.5, 1.0, 7, "low", ("END",))
    assert asked.json_answer == JsonAnswer()
    assert asked.cache_key == "talk"
    assert asked.question == asked.own_words == "Hi."
    assert not asked.agent
    assert asked.client_parallel_tools
    assert chat(max_tokens=7, max_completion_tokens=9).sampling.max_tokens == 9
    assert not chat(parallel_tool_calls=False).client_parallel_tools


def test_request_tools() -> None:
    asked = chat(tools=TOOLS, tool_choice="required")
    assert [tool.name for tool in asked.tools] == ["view", "patch"]
    assert asked.agent
    assert asked.tool_choice == ToolChoice(ToolUse.REQUIRED)


@pytest.mark.parametrize(
    ("choice", "tools", "chosen"),
    [
        (None, 2, ToolChoice()),
        ("none", 2, ToolChoice(ToolUse.NONE)),
        (
            {"type": "function", "function": {"name": "view"}},
            2,
            ToolChoice(ToolUse.REQUIRED, "view"),
        ),
        (
            {"type": "custom", "custom": {"name": "patch"}},
            2,
            ToolChoice(ToolUse.REQUIRED, "patch"),
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": TOOLS[:1]},
            },
            1,
            ToolChoice(ToolUse.REQUIRED),
        ),
    ],
)
def test_request_choice_of_a_tool(choice: Any, tools: int, chosen: ToolChoice) -> None:
    asked = chat(tools=TOOLS, tool_choice=choice)
    assert (len(asked.tools), asked.tool_choice) == (tools, chosen)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n": 2}, "n must be 1"),
        ({"functions": [{}]}, "functions"),
        ({"logprobs": True}, "logprobs"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"tools": [{"type": "function"}]}, "name of a tool"),
        ({"messages": []}, "nothing to answer"),
    ],
)
def test_request_is_refused_where_the_client_relies_on_it(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        chat(**fields)


def test_request_tells_what_is_left_out() -> None:
    asked = decode_completion(
        {**HI, "seed": 7, "tools": [{"type": "web_search"}], "stream": True}
    )
    assert asked.left_out == ("the tool 'web_search'", "seed")
    assert asked.stream


HEAD = ReplyHead("1", "m", 7)

ANSWER_DATA = ProviderData(Origin("gemini", "box", "m"), {"s": 1})

ANSWER: list[StreamEvent] = [
    ThinkingDelta("h"),
    ThinkingDelta("m"),
    ThinkingDelta("", ANSWER_DATA),
    TextDelta("One "),
    TextDelta("two."),
    ToolCall("a", "view", '{"x":1}'),
    ToolCall("b", "patch", write_freeform("***")),
    Usage(9, 5, 4, 0, 2),
    Finish(FinishReason.TOOL_CALLS),
]

CALLS = [
    {
        "id": "a",
        "type": "function",
        "function": {"name": "view", "arguments": '{"x":1}'},
    },
    {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "***"}},
]


def written(
    *events: StreamEvent, counts: bool = False
) -> tuple[list[Any], CompletionReply]:
    reply = CompletionReply(HEAD, freeform=frozenset({"patch"}), counts=counts)
    return [*(c for e in events for c in reply.feed(e)), *reply.flush()], reply


def test_reply_in_chunks() -> None:
    (*chunks, counted, done), _ = written(*ANSWER, counts=True)
    assert done is DONE
    assert counted["choices"] == []
    assert counted["usage"] == write_usage(Usage(9, 5, 4, 0, 2))
    for chunk in chunks:
        assert chunk["usage"] is None
        assert chunk["object"] == "chat.completion.chunk"
        assert (chunk["id"], chunk["created"], chunk["model"]) == ("chatcmpl-1", 7, "m")
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    details = deltas.pop(3)["reasoning_details"]
    assert read_encrypted(details[0]["data"]) == ANSWER_DATA
    assert details[0]["text"] == "hm"
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "h"},
        {"reasoning_content": "m"},
        {"content": "One "},
        {"content": "two."},
        {"tool_calls": [{"index": 0, **CALLS[0]}]},
        {"tool_calls": [{"index": 1, **CALLS[1]}]},
        {},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_reply_as_one_object() -> None:
    _, reply = written(*ANSWER)
    whole = reply.whole()
    assert whole["object"] == "chat.completion"
    assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}
    (choice,) = whole["choices"]
    message = choice["message"]
    assert (message["content"], message["tool_calls"]) == ("One two.", CALLS)
    assert message["reasoning_content"] == "hm"
    assert len(message["reasoning_details"]) == 1


def test_reply_of_plain_text_has_nothing_else() -> None:
    chunks, reply = written(TextDelta("Hi."), Finish(FinishReason.LENGTH))
    assert len(chunks) == 4
    assert "usage" not in chunks[0]
    whole = reply.whole()
    assert whole["usage"] is None
    assert whole["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "Hi.", "refusal": None},
        "finish_reason": "length",
        "logprobs": None,
    }


def test_reply_of_encrypted_reasoning_alone() -> None:
    _, reply = written(ThinkingDelta("", ANSWER_DATA), ToolCall("a", "view", "{}"))
    message = reply.whole()["choices"][0]["message"]
    assert message["content"] is None
    assert "reasoning_content" not in message
    assert message["reasoning_details"][0]["text"] == ""


def test_reply_names_its_sources() -> None:
    told = (Citation("https://a"), Citation("https://b"), Citation("https://b", "B"))
    chunks, reply = written(TextDelta("Hi."), *told, Citation("https://b"))
    found = reply.whole()["choices"][0]["message"]["annotations"]
    assert chunks[-2]["choices"][0]["delta"] == {"annotations": found}
    assert [one["url_citation"]["title"] for one in found] == ["https://a", "B"]


def test_reply_of_a_failure_is_an_error_event() -> None:
    reply = CompletionReply(HEAD)
    _, error = reply.fail(BadRequest("No."))
    assert error["error"]["message"] == "No."
