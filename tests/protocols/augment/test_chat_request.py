"""A whole chat body becomes a conversation, or nothing to answer, and never raises."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Origin,
    ProviderData,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
)
from byok.core.code_query import FileChunk
from byok.core.errors import UpstreamGarbled
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.core.stage import drain
from byok.core.wire.json_body import write_json
from byok.dialects.base import DIALECTS, Target
from byok.protocols.augment.body import objects
from byok.protocols.augment.chat_job import chat_lines, chat_object
from byok.protocols.augment.chat_reply import ChatReply, chunk, collect
from byok.protocols.augment.chat_request import (
    ConversationPosition,
    decode_chat,
    has_parent,
    model_id,
    open_folders,
    place_of,
    plain_messages,
)
from byok.protocols.augment.reply_job import (
    DecodeState,
    Defaults,
    ReplyFacts,
    make_caching_state,
)
from byok.upstream.toolcalls.assemble import ToolCallAssembler
from tests.fakes.bodies import (
    ANYTHING,
    PNG,
    exchange,
    image_node,
    result_node,
    text_node,
)
from tests.fakes.conversations import Conversation, conversations
from tests.fakes.jobs import PLAIN, events, whole
from tests.fakes.prompts import BARE, NONE
from tools.fuzz.chat import check_body

IDE = {"type": 4, "ide_state_node": {"workspace_folders": [{"folder_root": "/w"}]}}
SUMMARY = {"type": 10, "history_summary_node": {"summary_text": "So far."}}


def decoded(**body: Any) -> ChatRequest:
    return decode_chat(body, BARE)


def user_text(chat: ChatRequest) -> str:
    """Everything the user is made to say."""
    return "\n".join(
        part.text
        for message in chat.messages
        if message.role is Role.USER
        for part in message.parts
        if isinstance(part, TextPart)
    )


def roles(chat: ChatRequest) -> list[str]:
    return [message.role.value for message in chat.messages]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="nothing at all"),
        pytest.param({"message": " ", "nodes": []}, id="blank"),
        pytest.param({"nodes": [IDE]}, id="only the IDE's state"),
        pytest.param({"chat_history": [exchange("a", "b")]}, id="all was answered"),
        pytest.param({"chat_history": [exchange("a", "b"), {}]},
                     id="all was answered, then an empty exchange"),
        pytest.param({name: None for name in (
            "message", "nodes", "chat_history", "model", "mode", "tool_definitions",
            "feature_detection_flags", "rules", "blobs", "conversation_id",
        )}, id="all null"),
    ],
)  # fmt: skip
def test_chat_request_that_asks_nothing_has_no_messages(body: dict[str, Any]) -> None:
    chat = decode_chat(
        {"user_guidelines": "Be brief.", **body}, replace(BARE, system_prompt="Base.")
    )
    assert chat.messages == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"message": "Hi?"}, "user", id="a message"),
        pytest.param({"nodes": [text_node("Hi?")]}, "user", id="a node"),
        pytest.param({"nodes": [image_node()]}, "user", id="a picture"),
        pytest.param({"prompt": "Hi?"}, "user", id="a prompt"),
        pytest.param({"instruction": "Hi?"}, "user", id="an instruction"),
        pytest.param({"chat_history": [exchange("a", calls=["c"])],
                      "nodes": [result_node("c")]},
                     "user assistant tool", id="an agent goes on"),
        pytest.param({"chat_history": [exchange("a", calls=["c"])]},
                     "user assistant tool", id="open calls"),
        pytest.param({"chat_history": [exchange("a")]}, "user", id="no answer yet"),
        ({"message": "Hi?", "user_guidelines": "x"}, "system user"),
    ],
)  # fmt: skip
def test_chat_request_that_asks_has_messages(
    body: dict[str, Any], expected: str
) -> None:
    assert roles(decode_chat(body, BARE)) == expected.split()


def test_words_beside_a_tools_result_are_a_question_and_the_result_is_not() -> None:
    history = [exchange("a", calls=["c"])]
    result = result_node("c", "Says the file.")
    asked = decoded(chat_history=history, nodes=[result, text_node("Stop, use Go.")])
    assert asked.question == "Stop, use Go."
    assert decoded(chat_history=history, nodes=[result], message="...").question == ""


@pytest.mark.case("B85")
def test_chat_request_of_five_thousand_turns_is_read() -> None:
    chat = decoded(message="c", chat_history=[exchange("a", "b")] * 5000)
    assert len(chat.messages) == 10_001


@pytest.mark.case("B85")
def test_unknown_node_type_is_reported_and_ignored() -> None:
    nodes = [{"id": n, "type": n} for n in range(1000) if n != 10]  # a summary
    past = {"request_nodes": [{"type": -5555}]}
    chat = decoded(message="Hi?", nodes=nodes, chat_history=[past])
    assert "Hi?" in user_text(chat)
    [note] = chat.notes
    assert note.endswith(", ".join(map(str, [-5555, *range(11, 20)])))


CODE = {"path": "a.py", "selected_code": "x = 1", "diff": "+x"}


@pytest.mark.parametrize(
    ("body", "is_shown"),
    [
        pytest.param({"message": "Hi?"}, True, id="a question"),
        pytest.param({"message": "Hi?", "disable_selected_code_details": True}, False,
                     id="switched off"),
        pytest.param({"message": "Hi?", "nodes": [result_node("z")]}, False,
                     id="beside results"),
        pytest.param({"message": "", "nodes": [IDE],
                      "chat_history": [exchange("a", calls=["c"])]}, False,
                     id="without a question"),
    ],
)  # fmt: skip
def test_selection_and_patch_stand_before_a_question(
    body: dict[str, Any], is_shown: bool
) -> None:
    said = user_text(decode_chat({**CODE, **body}, BARE))
    assert ("x = 1" in said, "```diff\n+x" in said) == (is_shown, is_shown)
    if is_shown:
        assert said.index("x = 1") < said.index("+x") < said.index("Hi?")


def test_history_summary_drops_what_is_older() -> None:
    chat = decoded(
        message="Now?",
        chat_history=[
            exchange("very old", "x", nodes=[SUMMARY]),
            exchange("old", "y"),
            exchange("", "Yes.", nodes=[SUMMARY]),
            exchange("later", "z"),
        ],
    )
    said = user_text(chat)
    assert "So far." in said
    assert "old" not in said
    assert "later" in said
    assert roles(chat) == ["user", "assistant", "user", "assistant", "user"]


def test_a_summary_in_the_request_drops_all_history() -> None:
    past = [exchange("old", calls=["c"])]
    chat = decoded(chat_history=past, nodes=[SUMMARY, result_node("c", "2 failed")])
    assert roles(chat) == ["user"]
    assert "2 failed" in user_text(chat)
    assert "old" not in user_text(chat)


def test_tool_results_after_a_summarised_exchange_still_pair() -> None:
    past = [exchange("", nodes=[SUMMARY], calls=["c"])]
    chat = decoded(chat_history=past, nodes=[result_node("c")])
    assert roles(chat) == ["user", "assistant", "tool"]


def test_chat_request_of_a_silent_job_has_no_tools() -> None:
    tools = [{"name": "view"}]
    assert decoded(message="a", tool_definitions=tools).tools
    silent = decoded(message="a", tool_definitions=tools, silent=True)
    assert silent.silent
    assert silent.tools == ()


@pytest.mark.parametrize(
    ("body", "model"),
    [
        ({"model": "byok:a:b"}, "byok:a:b"),
        ({"model": None, "model_id": "x"}, "x"),
        ({"model": "", "modelName": "x"}, "x"),
        ({"model": ["x"]}, ""),
        ({}, ""),
    ],
)
def test_chat_model_is_found_in_its_fields(body: dict[str, Any], model: str) -> None:
    assert model_id(body) == model


@pytest.mark.parametrize(
    ("flags", "parallel", "start"),
    [
        ({"support_parallel_tool_use": True}, True, False),
        ({"supportToolUseStart": True}, False, True),
        ({}, False, False),
        ("x", False, False),
    ],
)
def test_chat_request_says_which_nodes_the_client_supports(
    flags: Any, parallel: bool, start: bool
) -> None:
    chat = decoded(message="a", feature_detection_flags=flags)
    assert chat.client_parallel_tools is parallel
    assert chat.client_tool_use_start is start


@pytest.mark.case("B90")
def test_sampling_defaults_of_the_user_count_and_the_clients_do_not() -> None:
    defaults = Defaults("Base.", "Added.", Sampling(temperature=0.5), NONE)
    odd = {"temperature": "hot", "stop_sequences": -1, "top_p": 3, "max_tokens": None}
    chat = decode_chat({"message": "a", **odd}, defaults)
    assert chat.sampling == Sampling(temperature=0.5)
    assert chat.messages[0].parts == (TextPart("Base.\n\nAdded."),)


def test_system_prompt_override_of_a_third_party_is_ignored() -> None:
    override = {"base_url": "http://evil", "api_key": "stolen-key"}
    chat = decoded(message="a", third_party_override=override)
    assert "evil" not in repr(chat)
    assert "stolen-key" not in repr(chat)


@pytest.mark.case("B86")
def test_image_of_thirty_megabytes_is_passed_on() -> None:
    data = PNG[:8] + "AAAA" * (30 * 2**20 // 4)
    [message] = decoded(nodes=[image_node(data)]).messages
    [image] = message.parts
    assert isinstance(image, ImagePart)
    assert len(image.data) == len(data)


FIELDS = (
    "message", "model", "mode", "tool_definitions", "conversation_id", "path", "lang",
    "prefix", "selected_code", "suffix", "diff", "blobs", "user_guidelines", "rules",
    "skills", "agent_memories", "memories_info", "persona_type", "silent", "prompt",
    "feature_detection_flags", "third_party_override", "system_prompt",
    "system_prompt_append", "system_prompt_replacements", "instruction",
    "disable_selected_code_details",
)  # fmt: skip
BODIES = st.dictionaries(
    st.sampled_from([*FIELDS, "nodes", "structured_request_nodes", "chat_history"]),
    ANYTHING,
)


@settings(max_examples=12)
@given(BODIES)
@pytest.mark.case("B85", "B45")
def test_any_json_becomes_a_request_that_breaks_no_rule(body: dict[str, Any]) -> None:
    check_body(write_json(body))


@settings(max_examples=12)
@given(conversations())
def test_a_conversation_becomes_a_request_that_breaks_no_rule(
    conversation: Conversation,
) -> None:
    check_body(write_json(conversation.body))


@settings(max_examples=12)
@given(conversations(), conversations())
def test_a_history_that_was_read_before_is_sent_in_the_same_bytes(
    one: Conversation, other: Conversation
) -> None:
    """Turns of two conversations by turns: longer, edited, and gone back."""
    before, more = (objects(c.body, "chat_history") for c in (one, other))
    edited = [{**item, "request_message": "Edited."} for item in before]
    histories: tuple[list[Any], ...] = (
        before,
        before + more,
        edited + more,
        [*before, 7],
        before[:1],
        [],
    )
    keeping = make_caching_state(lambda: True)
    plain = DecodeState()
    for history in histories:
        for body in (one.body, other.body):
            asked = {**body, "chat_history": history}
            assert sent(asked, keeping) == sent(asked, plain)


def sent(body: dict[str, Any], state: DecodeState) -> list[bytes]:
    """Return what the upstreams of all dialects get."""
    chat = decode_chat(body, replace(BARE, state=state))
    target = Target("model", origin=Origin("d", "u", "model"))
    dialects = (make("openai_compatible") for make in DIALECTS.values())
    return [write_json(dialect.encode(chat, target).body) for dialect in dialects]


def test_an_answer_comes_back_in_its_order_with_its_provider_data() -> None:
    """A model's answer, the client's nodes of it, and the next request."""
    signed = [ProviderData(Origin("d", "u", "m"), {"signature": f"{n}"}) for n in "ab"]
    events: list[StreamEvent] = [
        ThinkingDelta("I look."),
        ThinkingDelta("", signed[0]),
        TextDelta("First "),
        TextDelta("one."),
        ToolCallDelta(0, "c1", "view", '{"path": '),
        ToolCallDelta(0, arguments='"a"}'),
        ThinkingDelta("", signed[1]),
        TextDelta("Then two."),
        ToolCallDelta(1, "c2", "view", "{}"),
        Finish(FinishReason.TOOL_CALLS),
    ]
    assembler = ToolCallAssembler((), new_id=lambda: "new")
    reply = ChatReply(ChatRequest(()), ReplyFacts("r"))
    chunks = [c for event in drain(assembler, events) for c in reply.feed(event)]
    answer = collect([*chunks, *reply.flush()])
    item = {"request_message": "Look.", "response_nodes": answer["nodes"]}
    body = {"chat_history": [item], "nodes": [result_node("c1"), result_node("c2")]}
    _, message, *_ = decode_chat(body, BARE).messages
    assert message.parts == (
        ThinkingPart("I look.", signed[0]),
        TextPart("First one."),
        ToolCall("c1", "view", '{"path": "a"}'),
        ThinkingPart("", signed[1]),
        TextPart("Then two."),
        ToolCall("c2", "view", "{}"),
    )


# A chat is streamed or whole; both begin with what is unknown of the blobs


BODY = {"message": "x"}
FACTS = ReplyFacts("r", ("b",), False)


def test_chat_stream_first_line_has_the_facts() -> None:
    reply = chat_lines(BODY, PLAIN).reply(FACTS)
    assert reply.first == {
        **chunk(),
        "unknown_blob_names": ["b"],
        "checkpoint_not_found": True,
    }
    assert (reply.heartbeat, reply.keeps_part) == (chunk(), True)


def test_chat_object_of_a_broken_answer_keeps_its_text() -> None:
    reply = chat_object(BODY, PLAIN).reply(FACTS)
    with pytest.raises(UpstreamGarbled):
        reply.fail_whole(UpstreamGarbled("broke"))
    reply.feed(TextDelta("One"))
    found = reply.fail_whole(UpstreamGarbled("broke"))
    assert found["text"] == "One\n[byok] broke"
    assert found["stop_reason"] == 0
    assert found["error"]["code"] == UpstreamGarbled("").code


def test_chat_stream_first_line_names_the_places_of_retrieved_code() -> None:
    facts = ReplyFacts("r", chunks=(FileChunk("b", 1, 5),))
    chunks = [{"char_start": 1, "char_end": 5, "blob_name": "b"}]
    reply = chat_lines(BODY, PLAIN).reply(facts)
    assert reply.first == {**chunk(), "workspace_file_chunks": chunks}
    found = whole(chat_object, BODY, events("One."), facts)
    assert found["workspace_file_chunks"] == chunks


@pytest.mark.parametrize("decode", [chat_lines, chat_object])
def test_a_chat_says_which_code_it_is_about(decode: Any) -> None:
    body = {"message": "Where?", "user_guided_blobs": ["b"]}
    assert decode(body, PLAIN).code_question.question == "Where?"
    assert decode(BODY, PLAIN).code_question is None


# Which request follows which, and which takes the place of another


ONE, TWO = {"request_id": "r1"}, {"request_id": "r2"}


def chat(*history: dict[str, str], **fields: Any) -> dict[str, Any]:
    return {"conversation_id": "c", "chat_history": [*history], **fields}


def test_conversation_place_follows_what_was_said_last() -> None:
    first, second = place_of(chat(ONE)), place_of(chat(ONE, TWO))
    assert first is not None
    assert second is not None
    assert first.conversation == second.conversation == "c"
    assert first.after != second.after


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"chat_history": [ONE]},
        {"conversation_id": ["c"], "chat_history": [ONE]},
        chat(ONE, silent=True),
        chat(),
    ],
    ids=str,
)
def test_what_follows_nothing_in_a_conversation_has_no_place(
    body: dict[str, Any],
) -> None:
    assert place_of(body) is None


def test_conversation_place_of_a_repeated_question_is_the_same() -> None:
    again, older = place_of(chat(ONE, message="b")), place_of(chat(ONE, message="a"))
    assert again == older == ConversationPosition("c", "1 r1")


# What chats tell of the folders that a client has open


def state(*roots: str, **fields: Any) -> dict[str, Any]:
    folders = [{"folder_root": root, "repository_root": "/r"} for root in roots]
    return {"type": 4, "ide_state_node": {"workspace_folders": folders, **fields}}


@pytest.mark.parametrize(
    "carrier", ["nodes", "structured_request_nodes", "request_nodes"]
)
def test_open_folders_come_from_the_newest_message_that_names_them(
    carrier: str,
) -> None:
    history = [{"request_nodes": [state("/old")]}, {"request_nodes": [state("/new")]}]
    asked = {carrier: [{"type": 0}, state("/now", "/too")], "chat_history": history}
    assert open_folders(asked) == ["/now", "/too"]
    silent = {carrier: [state(workspace_folders_unchanged=True)]}
    assert open_folders({**silent, "chat_history": history}) == ["/new"]
    assert open_folders(silent) == []


def test_a_folder_without_a_root_is_known_by_its_repository() -> None:
    node = {"workspace_folders": [{"repository_root": "/r"}, {}, 5]}
    assert open_folders({"nodes": [{"type": 4, "ide_state_node": node}]}) == ["/r"]


def test_open_folders_are_limited_in_number_and_length() -> None:
    assert len(open_folders({"nodes": [state(*map(str, range(1, 999)))]})) == 64
    assert open_folders({"nodes": [state("/" * 5000)]}) == []


def test_rules_see_a_chat_with_the_roles_of_its_turns() -> None:
    asked = {"chat_history": [exchange("Look.", "Yes.", calls=["c"])]}
    results = {**asked, "nodes": [result_node("c")]}
    roles = [message.role for message in plain_messages(results, DecodeState())]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL]
    both = {**asked, "nodes": [result_node("c"), text_node("And now?")]}
    assert plain_messages(both, DecodeState())[-1].role is Role.USER


@pytest.mark.parametrize(
    ("parent", "own", "expected"),
    [("p", "c", True), ("c", "c", False), ("", "c", False), (7, "c", True)],
)
def test_a_conversation_that_an_agent_began_has_a_parent(
    parent: Any, own: str, *, expected: bool
) -> None:
    body = {"parent_conversation_id": parent, "conversation_id": own}
    assert has_parent(body) is expected
