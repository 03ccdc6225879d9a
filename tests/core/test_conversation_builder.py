"""Conversations in which every tool call has exactly one result."""

from byok.core.chat import Role, TextPart, ThinkingPart, ToolCall, ToolResult
from byok.core.conversation_builder import ConversationBuilder

CALL = ToolCall("c1", "view", "{}")


def test_an_empty_answer_adds_nothing() -> None:
    builder = ConversationBuilder("...")
    builder.add_answer(())
    assert builder.is_empty
    assert builder.messages() == []


def test_a_result_has_a_place_if_its_call_is_there_and_has_no_other() -> None:
    builder = ConversationBuilder("...")
    builder.add_user([TextPart("Look.")])
    assert not builder.add_result(ToolResult("c1", "", "too early"))
    builder.add_answer([CALL])
    assert builder.add_result(ToolResult("c1", "", "found"))
    assert builder.add_result(ToolResult("c1", "", "found"))
    assert not builder.add_result(ToolResult("c1", "", "another"))
    *_, result = builder.messages()
    assert result.parts == (ToolResult("c1", "view", "found"),)


def test_a_turn_without_text_goes_on_behind_one_without_calls() -> None:
    builder = ConversationBuilder("Begin.")
    builder.add_turn([ThinkingPart("First."), TextPart("One.")])
    builder.add_turn([ThinkingPart("Second."), CALL])
    first, answer, result = builder.messages()
    assert (first.role, first.parts) == (Role.USER, (TextPart("Begin."),))
    assert answer.parts == (TextPart("One."), ThinkingPart("Second."), CALL)
    [missing] = result.parts
    assert isinstance(missing, ToolResult)
    assert missing.is_missing


def test_an_answer_of_thoughts_alone_is_left_out_between_the_users_messages() -> None:
    builder = ConversationBuilder("...")
    builder.add_user([TextPart("Look.")])
    builder.add_turn([ThinkingPart("Where?")])
    builder.add_user([TextPart("Here.")])
    [asked] = builder.messages()
    assert (asked.role, asked.parts) == (
        Role.USER,
        (TextPart("Look."), TextPart("Here.")),
    )
