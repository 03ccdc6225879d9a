"""Memory tools: absent required text fields come from the user's own words."""

import re
from typing import Any

import pytest

from byok.core.chat import Json
from byok.upstream.toolcalls.repair import is_memory_tool, memory_supply

SAID = "Always run   the tests\nwith pytest -q before you commit anything, " + "x" * 60
FLAT = " ".join(SAID.split())


@pytest.mark.parametrize(
    ("name", "is_memory"),
    [
        ("remember", True),
        ("save_memory", True),
        ("mcp_Memory-Store", True),
        ("memories_list", False),
        ("save-file", False),
    ],
)
def test_a_memory_tool_is_told_by_its_name(name: str, is_memory: bool) -> None:
    assert is_memory_tool(name) is is_memory


def requiring(*names: str, **kinds: Any) -> Json:
    properties = {name: {"type": kinds.get(name, "string")} for name in names}
    return {"type": "object", "properties": properties, "required": list(names)}


@pytest.mark.parametrize("name", ["title", "name", "summary"])
def test_a_memory_title_is_the_first_80_characters(name: str) -> None:
    assert memory_supply(SAID)({}, requiring(name)) == {name: FLAT[:80]}


@pytest.mark.parametrize("name", ["memory", "content", "text"])
def test_a_memory_content_is_all_of_it_and_when_to_use_it(name: str) -> None:
    content = memory_supply(SAID)({}, requiring(name))[name]
    said, _, when = content.partition("\n")
    assert said == FLAT
    assert "when" in when.lower()


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        pytest.param({}, requiring("path", "file_content", "Title"), id="other names"),
        # null where the schema allows it
        ({"title": None}, requiring("title", title=["string", "null"])),
        pytest.param({}, {**requiring("title"), "required": []}, id="not required"),
        pytest.param({}, requiring("text", text="array"), id="no text field"),
    ],
)
def test_other_tools_get_no_memory_fields(
    arguments: dict[str, Any], schema: Json
) -> None:
    assert memory_supply(SAID)(arguments, schema) == {}


def test_a_memory_field_without_a_usable_text_is_supplied() -> None:
    short = {"properties": {"title": {"minLength": 5}}, "required": ["title"]}
    for value, schema in (
        ("", requiring("title")),
        (" \n", requiring("title")),
        (None, requiring("title")),
        ("abc", short),
    ):
        assert memory_supply("Hi there")({"title": value}, schema) == {
            "title": "Hi there"
        }
    assert memory_supply("Hi there")({"title": "abcde"}, short) == {}


def test_a_memory_tool_is_told_by_its_description() -> None:
    wrong: list[str] = []
    for description, stores in (
        ("Call this tool when the user asks you to remember something.", True),
        ("Creates a long-term memory from this conversation.", True),
        ("Save information to memory.", True),
        ("将用户的话保存为长期记忆。", True),
        ("Shows how much memory a process uses.", False),
        ("Search the memories of earlier conversations.", False),
        ("Writes a file. Its memory is not limited.", False),
        ("Save a file.", False),
        ("", False),
    ):
        if is_memory_tool("keep", description) is not stores:
            wrong.append(description)
    assert not wrong


def test_memory_sentences_are_in_the_language_of_the_user() -> None:
    wrong: list[str] = []
    for said, script in (
        ("提交前总是运行测试。", "\u4e00-\u9fff"),
        ("コミットの前にテストを実行して。", "\u3040-\u9fff"),
        ("커밋 전에 테스트를 실행하세요.", "\uac00-\ud7af"),
    ):
        filled = memory_supply(said)({}, requiring("memory", "context"))
        added = "".join(filled.values()).replace(said, "")
        if not re.search(f"[{script}]", added) or re.search("[A-Za-z]", added):
            wrong.append(repr(filled))
    assert not wrong
