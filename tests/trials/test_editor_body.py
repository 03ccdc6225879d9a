"""Bodies of a trial are read by the protocol as those of an editor."""

from byok.augment.chat_request import decode_chat
from byok.chat import Role, TextPart, ToolCall, ToolResult
from byok.trials.editor_body import chat_body, first_nodes, past_exchange, result_node
from byok.trials.tools import TOOLS
from tests.fakes.prompts import BARE

USE = {"tool_use_id": "c1", "tool_name": "view", "input_json": "{}"}


def test_a_question_is_read_once_with_the_place_of_the_workspace() -> None:
    chat = decode_chat(chat_body("m", "c", "Why?", first_nodes("Why?"), []), BARE)
    [message] = [m for m in chat.messages if m.role is Role.USER]
    text = "".join(p.text for p in message.parts if isinstance(p, TextPart))
    assert text.count("Why?") == 1
    assert "/workspace/project" in text
    assert chat.agent
    assert {tool.name for tool in chat.tools} == {*TOOLS}
    assert (chat.conversation, chat.client_parallel_tools) == ("c", True)


def test_a_result_answers_the_call_of_the_history() -> None:
    said = [{"id": 1, "type": 5, "content": "", "tool_use": USE}]
    history = [past_exchange("r1", first_nodes("Why?"), said)]
    nodes = [result_node(0, "c1", "No such file.", is_error=True)]
    chat = decode_chat(chat_body("m", "c", "", nodes, history), BARE)
    calls = [p for m in chat.messages for p in m.parts if isinstance(p, ToolCall)]
    results = [p for m in chat.messages for p in m.parts if isinstance(p, ToolResult)]
    assert [call.name for call in calls] == ["view"]
    [result] = results
    assert (result.call_id, result.is_error) == (calls[0].id, True)
    assert chat.messages[-1].role is Role.TOOL
