"""Bodies that nobody should send: each is refused in words, or answered."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import Role, ToolCall, ToolResult
from byok.core.errors import BadRequest
from byok.protocols.v1.block_reply import Question, ReplyHead
from byok.protocols.v1.chat_completions import decode_completion
from byok.protocols.v1.messages import decode_message
from byok.protocols.v1.responses import decode_response
from tests.fakes.bodies import ANYTHING

KINDS = """
    text input_text output_text refusal image_url input_image image document
    tool_use tool_result thinking redacted_thinking reasoning message function_call
    function_call_output custom_tool_call custom_tool_call_output local_shell_call
    function custom namespace allowed_tools enabled adaptive json_schema base64 url
    search_result tool_reference web_search auto any tool file input_file
"""
NAMES = """
    text content name id call_id tool_use_id tool_call_id input arguments output source
    data media_type url image_url signature thinking summary encrypted_content function
    custom tools tool_choice parameters input_schema format schema definition system
    instructions stop stop_sequences temperature top_p max_tokens reasoning effort
    output_config response_format stream_options thinking budget_tokens tool_calls
    reasoning_details is_error title namespace parallel_tool_calls file file_data
    filename
"""
DECODERS = {
    "completion": (decode_completion, "messages"),
    "response": (decode_response, "input"),
    "message": (decode_message, "messages"),
}
_leaf = ANYTHING | st.sampled_from(["auto", "user", "assistant", "view", "1", 1, True])


def _node(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5)
    typed = st.builds(
        lambda kind, rest: {**rest, "type": kind},
        st.sampled_from(KINDS.split()),
        fields,
    )
    return st.lists(typed, max_size=4) | typed | fields


VALUES = st.recursive(_leaf, _node, max_leaves=12)
MESSAGES = st.lists(
    st.builds(
        lambda role, rest: {**rest, "role": role},
        st.sampled_from(["user", "assistant", "system", "developer", "tool"]),
        st.dictionaries(st.sampled_from(NAMES.split()), VALUES, max_size=4),
    )
    | VALUES,
    max_size=5,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=12)
@given(
    st.dictionaries(st.sampled_from(NAMES.split()), VALUES, max_size=6),
    MESSAGES,
)
def test_hostile_bodies_are_refused_or_become_a_legal_conversation(
    name: str, body: dict[str, Any], messages: list[Any]
) -> None:
    decode, field = DECODERS[name]
    try:
        question = decode({**body, field: messages})
    except BadRequest as error:
        assert error.status == 400
        assert len(error.sentence) < 400
        return
    _check(question)
    assert question.reply(ReplyHead("1", "m")).flush()


def _check(question: Question) -> None:
    """Check the order of the messages: each call has one result, directly behind."""
    open_calls: list[str] = []
    seen: set[str] = set()
    messages = question.chat.messages
    roles = [message.role for message in messages]
    assert (Role.USER, Role.USER) not in pairwise(roles)
    assert messages[messages[0].role is Role.SYSTEM].role is Role.USER
    for message in messages:
        if message.role is Role.TOOL:
            (result,) = message.parts
            assert isinstance(result, ToolResult)
            assert result.call_id == open_calls.pop(0)
            continue
        assert open_calls == []
        open_calls = [p.id for p in message.parts if isinstance(p, ToolCall)]
        assert not seen & {*open_calls}
        seen |= {*open_calls}
    assert open_calls == []
