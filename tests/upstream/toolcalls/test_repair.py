"""Tool arguments: every repair has a name, nothing is invented, nothing cut passes."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from byok.core.chat import Json, RepairMode
from byok.upstream.toolcalls.repair import (
    Unrepairable,
    coerce,
    fill_missing,
    is_memory_tool,
    is_valid,
    memory_supply,
    missing_required,
    repair_arguments,
)
from tests.fakes.schemas import OBJECTS, SCHEMAS
from tools.fuzz.toolcalls import check_repair

FENCE = "code fence"
STRAY = "stray text"
DOUBLE = "double-encoded JSON"
EMPTY = "empty arguments"
SURPLUS = "surplus closing bracket"
BESIDE = "empty object beside another"
REPEATED = "repeated object"

VIEW: Json = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "mode": {"type": "string", "default": "text"},
        "depth": {"type": "integer", "default": "5"},
        "tags": {"type": "array", "default": []},
    },
    "required": ["path", "mode"],
}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("{}", id="nothing in it"),
        pytest.param('\n { "path" : "\\u0061" , "n":1.0e2 } \t', id="odd spelling"),
        pytest.param('{"a": 123456789012345678901234567890}', id="a long integer"),
        pytest.param('{"a": "None", "b": "it\'s, }"}', id="words that need no repair"),
        pytest.param('{"a": 1e400, "b": [-1E+999]}', id="a number no float holds"),
    ],
)
@pytest.mark.parametrize("mode", list(RepairMode))
def test_repair_keeps_valid_arguments_as_the_model_wrote_them(
    raw: str, mode: RepairMode
) -> None:
    assert repair_arguments(raw, None, mode=mode) == (raw, [])
    assert repair_arguments(raw, {"type": "object"}, mode=mode) == (raw, [])


@pytest.mark.parametrize(
    ("raw", "repaired", "rules"),
    [
        pytest.param("", "{}", [EMPTY], id="nothing"),
        pytest.param("null", "{}", ["null arguments"], id="null"),
        ("None", "{}", ["python literal", "null arguments"]),  # Python's None
        pytest.param('```json\n{"a": 1}\n```', '{"a":1}', [FENCE], id="a fence"),
        # a fence amid words
        ('Sure:\n```json\r\n{"a": 1}\r\n```\nDone.', '{"a":1}', [FENCE]),
        ('```\n{"a": "x```"}\n```', '{"a":"x```"}', [STRAY]),  # a fence in a fence
        pytest.param('"{\\"a\\": 1}"', '{"a":1}', [DOUBLE], id="encoded twice"),
        pytest.param(
            "{'a': None, 'b': True}",
            '{"a":null,"b":true}',
            ["single quotes", "python literal"],
            id="Python",
        ),
        pytest.param(
            "{'a': 123456789012345678901234567890}",
            '{"a": 123456789012345678901234567890}',
            ["single quotes"],
            id="a long integer keeps its digits",
        ),
        pytest.param('{}{"a": 1}', '{"a":1}', [BESIDE], id="nothing, then an object"),
        pytest.param('{"a": 1}{"a": 1}', '{"a":1}', [REPEATED], id="the same twice"),
        ('{}{"a": 1} {"a":1}}', '{"a":1}', [SURPLUS, BESIDE]),  # all of that
    ],
)
def test_syntax_is_repaired_and_the_rule_named(
    raw: str, repaired: str, rules: list[str]
) -> None:
    assert repair_arguments(raw, None) == (repaired, rules)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param('{"path": "a.py"', id="the last brace is missing"),
        pytest.param('```json\n{"a": 1\n```', id="cut in a fence"),
        pytest.param("{'command': 'rm -rf {tmp}", id="a brace inside an open string"),
        pytest.param("7", id="a number"),
        pytest.param('{"a": 1}{"a": 2}', id="two objects"),
        '{"a": 1}{"a": 1.0}',  # two objects that Python takes for equal
        pytest.param('{"a": [1}]}', id="brackets that do not match"),
        pytest.param(r'{"a": "class\s+\w+\("}', id="a regular expression"),
        pytest.param(r"""{"a": "echo 'it'\''s here'"}""", id="a shell's apostrophe"),
        pytest.param("{'a': 1e400}", id="a number no float holds, in need of repair"),
        pytest.param('{"a": 1} and {"b": 2}', id="two objects amid words"),
        pytest.param('{"a":' * 5000 + "1" + "}" * 5000, id="too deep"),
    ],
)
@pytest.mark.parametrize("mode", list(RepairMode))
def test_repair_refuses_truncated_arguments_and_non_objects(
    raw: str, mode: RepairMode
) -> None:
    with pytest.raises(Unrepairable):
        repair_arguments(raw, VIEW, mode=mode)


def test_arguments_that_are_no_object_have_no_wrong_place() -> None:
    with pytest.raises(Unrepairable) as caught:
        repair_arguments("7", VIEW)
    assert (caught.value.offset, caught.value.cut) == (0, False)


@pytest.mark.parametrize(
    ("raw", "repaired", "rules"),
    [
        pytest.param(
            '{"path": "a", "mode": "b", "line": "5"}',
            '{"path":"a","mode":"b","line":5}',
            ["line: type made integer"],
            id="a type",
        ),
        # a declared default
        ('{"path": "a"}', '{"path":"a","mode":"text"}', ["mode: schema default"]),
        ('{"mode": "b"}', '{"mode": "b"}', []),  # a value without default stays out
        # null is not absent
        ('{"path": null, "mode": null}', '{"path": null, "mode": null}', []),
        ("", '{"mode":"text"}', [EMPTY, "mode: schema default"]),  # no arguments at all
    ],
)
def test_the_schema_repairs_types_and_defaults(
    raw: str, repaired: str, rules: list[str]
) -> None:
    assert repair_arguments(raw, VIEW) == (repaired, rules)


def test_repair_mode_fill_adds_empty_values_of_required_fields_only() -> None:
    schema = {**VIEW, "required": ["path", "line", "mode", "unknown"]}
    fixed, rules = repair_arguments("{}", schema, mode=RepairMode.FILL)
    assert fixed == '{"mode":"text","path":"","line":0}'
    assert rules == [
        "mode: schema default",
        "path: filled with an empty string",
        "line: filled with an empty integer",
    ]


def test_repair_mode_fill_leaves_out_what_the_conversation_supplies() -> None:
    def supply(arguments: Mapping[str, Any], schema: Json) -> Mapping[str, Any]:
        del schema
        return {"path": "said"} if "path" not in arguments else {}

    for mode in (RepairMode.LOSSLESS, RepairMode.FILL):
        fixed, rules = repair_arguments("{}", VIEW, mode=mode, supply=supply)
        assert json.loads(fixed) == {"path": "said", "mode": "text"}
        assert "filled from the conversation: path" in rules


def test_off_repairs_nothing_but_no_arguments() -> None:
    assert repair_arguments("", VIEW, mode=RepairMode.OFF) == ("{}", [])
    assert repair_arguments("{}", VIEW, mode=RepairMode.OFF) == ("{}", [])
    for raw in ("{'a': 1}", '```\n{"a": 1}\n```', '{"a": 1,}', "null", '"{}"'):
        with pytest.raises(Unrepairable):
            repair_arguments(raw, VIEW, mode=RepairMode.OFF)


# Properties

WRITTEN = st.sampled_from(
    [
        json.dumps,
        repr,
        lambda value: json.dumps(value, indent=1, ensure_ascii=False),
        lambda value: json.dumps(json.dumps(value)),
        lambda value: f"```json\n{json.dumps(value)}\n```",
        lambda value: f"I will call it: {json.dumps(value)}",
    ]
)


def uncertain(write: Any, text: str) -> bool:
    """Tell Python's escapes in its double quotes, which JSON does not have."""
    return write is repr and bool(re.search(r'"[^"]*\\[xU\']', text))


@settings(max_examples=150)
@given(OBJECTS, WRITTEN)
def test_repair_gives_the_same_value_however_it_was_written(
    value: dict[str, Any], write: Any
) -> None:
    text = write(value)
    try:
        fixed, rules = repair_arguments(text, None)
    except Unrepairable:
        assert uncertain(write, text)
        return
    assert json.loads(fixed) == value
    assert bool(rules) == (fixed != text)


@settings(max_examples=40)
@given(OBJECTS, SCHEMAS, WRITTEN)
def test_repair_refuses_a_strict_prefix_or_keeps_its_meaning(
    value: dict[str, Any], schema: dict[str, Any], write: Any
) -> None:
    text = write(value)
    assume(not uncertain(write, text))
    whole, _ = repair_arguments(text, schema)
    for end in range(1, len(text)):
        try:
            fixed, _ = repair_arguments(text[:end], schema)
        except Unrepairable:
            continue
        assert text[0] != "{"
        assert json.loads(fixed) == json.loads(whole)


SCRAPS = st.sampled_from(
    [
        *("{", "}", "[", "]", ",", ":", '"', "'", "\\", "```", "```json\n", "\n", " "),
        *("\\u00e9", "\\x41", '\\"', "\xa0", "{}", '{"a":', "5", "a"),
    ]
)
ATOMS = st.sampled_from(
    [
        *('"a"', "'b'", '""', "a", "true", "True", "null", "None", "5", "-0", "1e3"),
        *('"5"', '"[1]"', '"it\'s"', "'x\ny'", "1e999", "12345678901234567890", "nan"),
    ]
)
KEYS = st.sampled_from(['"a"', "'b'", '"path"', '""'])
SLOPPY = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda v: f"[{', '.join(v)}]")
        | st.lists(st.tuples(KEYS, inner), max_size=3).map(
            lambda v: "{" + ",".join(f"{key}: {item}" for key, item in v) + "}"
        )
    ),
    max_leaves=6,
)


@settings(max_examples=250)
@given(
    SLOPPY,
    st.lists(st.tuples(st.integers(0, 60), SCRAPS), max_size=2),
    st.none() | SCHEMAS,
    st.sampled_from(RepairMode),
)
def test_repair_never_invents_values_and_raises_only_its_own_error(
    text: str,
    scraps: list[tuple[int, str]],
    schema: dict[str, Any] | None,
    mode: RepairMode,
) -> None:
    for place, scrap in scraps:
        text = text[:place] + scrap + text[place:]
    check_repair(text, schema, mode)


# Types of a schema: taken where one reading is certain, else the value stays


SAME: Any = object()


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("integer", "5", 5),
        ("integer", "12345678901234567890123", 12345678901234567890123),
        ("integer", 5.0, 5),
        ("integer", 5.5, SAME),
        ("integer", 1e16, SAME),
        ("integer", True, SAME),
        ("number", "-0.5e1", -5.0),
        ("number", "12345678901234567890123", 12345678901234567890123),
        ("number", "NaN", SAME),
        ("number", 5, SAME),
        ("boolean", "true", True),
        ("boolean", "yes", SAME),
        ("string", 5, "5"),
        ("string", 5.5, SAME),
        ("array", '["a", 1]', ["a", 1]),
        ("object", '{"a": 1}', {"a": 1}),
        ("object", "[1]", SAME),
        ("nonsense", "5", SAME),
        (["null", "integer"], "5", 5),
        (["integer", "string"], "5", SAME),
        ([{"type": "integer"}], "5", SAME),
    ],
)
def test_an_argument_is_coerced_to_its_type(kind: Any, value: Any, wanted: Any) -> None:
    rules: list[str] = []
    result = coerce({"v": value}, {"properties": {"v": {"type": kind}}}, rules)["v"]
    expected = value if wanted is SAME else wanted
    assert (type(result), result) == (type(expected), expected)
    assert bool(rules) == (wanted is not SAME)


@pytest.mark.parametrize(
    ("schema", "value", "result", "rules"),
    [
        pytest.param(
            {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}},
            {"a": '["5"]'},
            {"a": [5]},
            ["a: type made array", "a[]: type made integer"],
            id="inside what was a string",
        ),
        pytest.param(
            {"properties": {"a": {"type": "integer", "enum": [1, 2]}}},
            {"a": "3"},
            {"a": "3"},
            [],
            id="no choice of the enum",
        ),
        pytest.param(
            {"properties": {"a": {"$ref": "#"}}},
            {"a": {"a": "5"}},
            {"a": {"a": "5"}},
            [],
            id="references are not followed",
        ),
    ],
)
def test_coercion_walks_the_schema(
    schema: Json, value: Any, result: Any, rules: list[str]
) -> None:
    noted: list[str] = []
    assert coerce(value, schema, noted) == result
    assert noted == rules


def test_coercion_stops_in_an_endless_schema() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = "5"
    for _ in range(200):
        schema, value = {"properties": {"a": schema}}, {"a": value}
    assert coerce(value, schema, []) == value


FIELDS: Json = {
    "properties": {
        "plain": {"type": "string"},
        "declared": {"type": "string", "default": "d"},
        "list": {"type": ["array", "null"]},
        "untyped": {},
    },
    "required": ["plain", "declared", "list", "untyped", "unknown", 7],
}


@pytest.mark.parametrize(
    ("value", "invent", "added"),
    [
        pytest.param({}, False, {"declared": "d"}, id="only defaults"),
        ({}, True, {"declared": "d", "plain": "", "list": []}),  # inventing
        ({"plain": "x", "list": 1, "z": 2}, True, {"declared": "d"}),  # the rest
    ],
)
def test_coercion_adds_missing_defaults(
    value: dict[str, Any], invent: bool, added: dict[str, Any]
) -> None:
    rules: list[str] = []
    assert fill_missing(value, FIELDS, rules, invent=invent) == {**value, **added}
    assert len(rules) == len(added)


@pytest.mark.parametrize("required", [None, "path", 5, {"path": True}, [], [5, None]])
def test_an_invalid_required_list_requires_nothing(required: Any) -> None:
    assert missing_required({}, {"required": required}) == []


FARE = {
    "type": "object",
    "properties": {
        "kind": {"type": ["string", "null"], "enum": ["a", None]},
        "list": {"type": "array", "items": {"type": "integer"}},
        "inner": {"type": "object", "required": ["x"]},
    },
    "required": ["kind"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"kind": "a"}, True),
        ({"kind": None, "list": [1, 2], "inner": {"x": {}}}, True),
        ({}, False),
        ({"kind": "b"}, False),
        ({"kind": "a", "other": 1}, False),
        ({"kind": "a", "list": [1, "2"]}, False),
        ({"kind": "a", "inner": {}}, False),
    ],
)
def test_value_is_valid_where_its_schema_allows_it(value: Any, *, valid: bool) -> None:
    assert is_valid(value, FARE) is valid


def test_value_is_valid_where_the_schema_is_none() -> None:
    assert is_valid({"a": [1]}, {})
    assert is_valid({"a": 1}, {"properties": {"a": True}, "required": "a"})
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    assert is_valid(deep, {"type": "array"})


# Memory tools: absent required text fields come from the user's own words


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
