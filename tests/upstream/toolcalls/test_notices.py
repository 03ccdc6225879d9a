"""Sentences about tool calls name each tool once, and no endless name."""

from byok.upstream.toolcalls.assemble import (
    cut_notice,
    incomplete_notice,
    invalid_notice,
    too_many_notice,
)


def test_a_notice_about_cut_calls_names_each_tool_once() -> None:
    notice = incomplete_notice(["view", "", "view", "x" * 500])
    assert f"call of view, a tool, {'x' * 64} was incomplete" in notice.text
    assert notice.code == "tool_call_incomplete"


def test_a_notice_about_the_output_limit_names_it_as_the_cause() -> None:
    notice = cut_notice(["view", "", "view"])
    assert "output limit in its call of view, a tool," in notice.text
    assert notice.code == "tool_call_incomplete"


def test_a_notice_about_invalid_json_names_the_tool() -> None:
    assert f"call of {'x' * 64} was not passed on" in invalid_notice("x" * 500).text
    assert invalid_notice("view").code == "tool_call_invalid"


def test_a_notice_about_too_many_calls_names_the_limit() -> None:
    notice = too_many_notice(64)
    assert "more than 64 tool calls" in notice.text
    assert notice.code == "too_many_tool_calls"
