"""Schemas that every vendor takes: by what MCP servers offer, and by chance."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from byok.core.chat import ChatRequest, Json, Message, Role, TextPart
from byok.dialects import schemas as schema_shapes
from byok.dialects.base import Target, write_request
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.presets import quirks_of
from byok.dialects.schemas import shape, unite, write_schema
from byok.protocols.augment.tools import read_tools
from tests.fakes.clock import check_linear
from tests.fakes.mcp_servers import NOTION, SERVERS, TEXT, Tools
from tests.fakes.schemas import MOST_TOOLS, RULES, SCHEMAS, refused
from tests.fakes.values import VALUES

QUESTION = Message(Role.USER, (TextPart("Hi?"),))


def clean(schema: Any, *, plain_keys: bool = False) -> Any:
    raw = json.dumps(schema).encode()
    return write_schema(raw, narrow=False, plain_keys=plain_keys)


def one(schema: Any, **root: Any) -> Any:
    """Clean the schema of one property."""
    return clean({"type": "object", "properties": {"x": schema}, **root})["properties"][
        "x"
    ]


def definitions(tools: Tools) -> list[dict[str, Any]]:
    """Write tools as the client sends them."""
    return [
        {"name": name, "description": "", "input_schema_json": json.dumps(schema)}
        for name, schema in tools.items()
    ]


def sent(vendor: str, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools of the request that a vendor gets."""
    chat = ChatRequest((QUESTION,), read_tools({"tool_definitions": tools}))
    quirks = quirks_of(vendor)
    offered: list[dict[str, Any]]
    offered = write_request(OpenAIChat(quirks), chat, Target("m"))[1].body["tools"]
    return offered


# Public servers


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("vendor", RULES)
@pytest.mark.slow
def test_tool_schemas_of_public_servers_suit_every_vendor(
    vendor: str, server: str
) -> None:
    tools = definitions(SERVERS[server])
    offered = sent(vendor, tools)
    assert {t["function"]["name"] for t in offered} == set(SERVERS[server])
    assert refused(vendor, offered) == []


@pytest.mark.parametrize("vendor", MOST_TOOLS)
def test_tool_count_stays_within_each_vendors_limit(vendor: str) -> None:
    many = {f"tool_{n}": {"type": "object"} for n in range(MOST_TOOLS[vendor] + 1)}
    assert len(sent(vendor, definitions(many))) == MOST_TOOLS[vendor]


def test_strict_rules_refuse_what_vendors_refused() -> None:
    """Without cleaning, each of these servers is refused by the vendor named."""
    for server, vendor in {
        "notion": "openai",
        "digitalocean": "azure",
        "twilio": "anthropic",
        "pdf-reader": "mistral",
        "apollo": "moonshot",
        "pagerduty": "moonshot",
        "azure-devops": "groq",
        "memory": "gemini",
    }.items():
        tools = [
            {"function": {"name": name, "parameters": {"type": "object", **schema}}}
            for name, schema in SERVERS[server].items()
        ]
        assert refused(vendor, tools), (server, vendor)


@pytest.mark.parametrize("server", ["filesystem", "memory"])
def test_tool_schema_that_suits_all_stays_byte_for_byte(server: str) -> None:
    for schema in SERVERS[server].values():
        plain = json.loads(json.dumps(schema).replace('"$schema"', '"$comment"'))
        assert json.dumps(clean(plain)) == json.dumps(plain)


# By chance

WORDS = st.sampled_from(
    [
        *("type", "items", "enum", "const", "required", "properties", "anyOf", "oneOf"),
        *("allOf", "not", "$ref", "$defs", "definitions", "exclusiveMinimum"),
        *("minimum", "minLength", "pattern", "description", "additionalProperties"),
        *("prefixItems", "multipleOf", "uniqueItems", "patternProperties", "$id"),
        *("if", "dependentRequired", "format", "examples", "default", "nullable"),
    ]
)
ODD_VALUES = st.sampled_from(
    [
        *("string", "array", "object", "any", "STRING", "#/$defs/a", "#/properties/a"),
        *("#/definitions/b", "#", "[", "a", "b", True, False, None, 0, 1, -1, 2.5),
    ]
)
ODD: st.SearchStrategy[Any] = st.recursive(
    ODD_VALUES,
    lambda inner: (
        st.dictionaries(WORDS | st.sampled_from(["a", "b"]), inner, max_size=4)
        | st.lists(inner, max_size=3)
    ),
    max_leaves=15,
)
ANY = SCHEMAS | st.dictionaries(WORDS, ODD, max_size=6)


@pytest.mark.slow
@settings(max_examples=400)
@given(ANY)
def test_every_vendor_takes_any_schema(schema: dict[str, Any]) -> None:
    tools = definitions({"tool": schema})
    judged = set()
    for vendor, rules in RULES.items():
        (tool,) = sent(vendor, tools)
        parameters = tool["function"]["parameters"]
        for rule in rules:
            if (case := (rule, json.dumps(parameters))) not in judged:
                judged.add(case)
                assert list(rule(parameters)) == [], vendor


@pytest.mark.slow
@settings(max_examples=200)
@given(ANY)
def test_tool_schema_cleaned_twice_is_unchanged(schema: dict[str, Any]) -> None:
    (tool,) = sent("openai", definitions({"tool": schema}))
    once = tool["function"]["parameters"]
    before = copy.deepcopy(once)
    assert clean(once) == before


CALLS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["x", "", 1, 2.5, True, None, [], ["x"], {"a": 1}]),
    max_size=3,
)
EASY: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(
                    ["string", "integer", "array", ["string", "null"]]
                )
            },
            optional={"minLength": st.integers(0, 2)},
        )
        | st.fixed_dictionaries(
            {"enum": st.lists(st.sampled_from(["x", 1]), min_size=1)}
        )
        | st.fixed_dictionaries({"anyOf": st.lists(EASY, min_size=1, max_size=2)})
        | st.fixed_dictionaries(
            {"type": st.just("array"), "items": st.lists(EASY, max_size=2)}
        )
    )
)
GROUPS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(st.sampled_from(["a", "b"]), EASY, max_size=2),
        "required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
    },
)


@pytest.mark.slow
@settings(max_examples=500)
@given(GROUPS, st.lists(GROUPS, max_size=3), CALLS)
def test_tool_schema_never_forbids_a_value_that_fits_the_original(
    whole: dict[str, Any], choices: list[dict[str, Any]], value: dict[str, Any]
) -> None:
    inner = {"type": "object", **whole, **({"anyOf": choices} if choices else {})}
    schema = {"type": "object", "properties": {"x": inner}, "required": ["x"]}
    modern = json.loads(json.dumps(schema).replace('"items": [', '"prefixItems": ['))
    if Draft202012Validator(modern).is_valid({"x": value}):
        assert Draft202012Validator(clean(schema)).is_valid({"x": value})


# By hand


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            {"type": "array"}, {"type": "array", "items": {}}, id="a bare array"
        ),
        pytest.param(
            {"type": "array", "items": [TEXT, {"type": "number"}]},
            {
                "type": "array",
                "items": {"anyOf": [TEXT, {"type": "number"}]},
                "description": 'items in order: [{"type":"string"},{"type":"number"}]',
            },
            id="a tuple",
        ),
        pytest.param({"type": "int"}, {"type": "integer"}, id="a type's nickname"),
        pytest.param({"type": "any"}, {}, id="any type"),
        pytest.param(
            {"type": "string", "enum": ["a", "a", None]},
            {"type": "string", "enum": ["a"]},
            id="an enum with null",
        ),
        pytest.param(
            {"type": "integer", "enum": ["1"]},
            {"type": "integer", "description": 'one of: ["1"]'},
            id="an enum of another type",
        ),
        pytest.param(
            {"type": "array", "items": False},
            {"type": "array", "items": {}, "description": "no further items"},
            id="an array without items",
        ),
        pytest.param({"type": "string", "anyOf": [3]}, TEXT, id="no schema to choose"),
        pytest.param(
            {"type": "string", "pattern": r"^\p{L}+$"},
            {"type": "string", "description": r'pattern: "^\\p{L}+$"'},
            id="a pattern of another language",
        ),
        pytest.param(
            {"type": "string", "anyOf": [{"minLength": 1}, {"enum": ["a"]}]},
            {"anyOf": [{"type": "string", "minLength": 1}, {"enum": ["a"]}]},
            id="a type beside choices",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {},
                "required": ["a"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {},
                "required": [],
                "additionalProperties": False,
            },
            id="a required key that may not be",
        ),
        pytest.param(
            {"$ref": "#/nowhere"}, {"description": 'as: "nowhere"'}, id="gone"
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {"a": {"type": "string", "required": True}},
            },
            {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
            id="a property that says it is required",
        ),
        *(
            pytest.param(
                {"type": "string", "const": value},
                {**TEXT, "description": f"one of: [{json.dumps(value)}]"},
                id=f"a text that is {value}",
            )
            for value in list[Any]((7, None, True, 1.5, [], {}))
        ),
        pytest.param(
            {"type": "integer", "const": 2.0},
            {"type": "integer", "const": 2.0},
            id="2.0",
        ),
        pytest.param(None, {}, id="null"),
    ],
)
def test_tool_schema_spelling_that_all_vendors_know(schema: Any, expected: Any) -> None:
    assert one(schema) == expected


def test_tool_schema_reference_at_the_root_is_inlined() -> None:
    found = clean(SERVERS["pagerduty"]["list_oncalls"])
    assert found["properties"] == {"id": TEXT}
    assert "$ref" not in found


def test_tool_schema_keywords_beside_a_reference_win() -> None:
    found = clean(SERVERS["pagerduty"]["list_schedules"])["properties"]["query_model"]
    assert found["description"] == "Only these."
    assert found["properties"]["team_ids"]["items"] == {}


def test_tool_schema_definitions_of_draft_7_are_renamed() -> None:
    shared = {"a": {"type": "string"}}
    whole = {"properties": {"x": {"$ref": "#/definitions/a"}}, "definitions": shared}
    found = clean(whole)
    assert found["properties"]["x"] == {"$ref": "#/$defs/a"}
    assert found["$defs"] == shared
    assert "definitions" not in found


@pytest.mark.parametrize("ref", ["#/$defs/t", "#/properties/t"])
def test_tool_schema_of_a_tree_stays_finite(ref: str) -> None:
    tree = {
        "type": "object",
        "description": "A tree.",
        "properties": {"left": {"$ref": ref, "description": "Less."}},
    }
    found = clean({"properties": {"t": tree}, "$defs": {"t": tree}})
    assert len(json.dumps(found)) < 2000


def test_tool_schema_references_that_double_at_every_step_end() -> None:
    many = {
        f"d{n}": {
            "description": "D",
            "properties": {
                side: {"$ref": f"#/$defs/d{n + 1}", "description": side}
                for side in "ab"
            },
        }
        for n in range(40)
    }
    found = clean({"properties": {"x": many["d0"]}, "$defs": many})
    assert len(json.dumps(found)) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("keyword", ["enum", "items", "required", "references"])
def test_tool_schema_cleaning_of_a_huge_schema_takes_linear_time(keyword: str) -> None:
    def write(size: int) -> None:
        huge = {f"p{n}": {"type": "array"} for n in range(size)}
        many: dict[str, Any] = {
            "enum": {"enum": [*range(size)]},
            "items": {"items": [{"minimum": n} for n in range(size)]},
            "required": {"required": [*huge]},
            "references": {
                "properties": {
                    f"r{n}": {"$ref": "#/$defs/t", "description": "R"}
                    for n in range(200)
                }
            },
        }
        one(many[keyword], **{"$defs": {"t": {"description": "T", "properties": huge}}})
        clean({"anyOf": [many[keyword]] * 5})

    check_linear(write, 1500)


def test_tool_schema_odd_keys_move_to_the_description() -> None:
    schema = SERVERS["twilio"]["TwilioApiV2010--ListMessage"]
    found = clean(schema, plain_keys=True)
    assert list(found["properties"]) == ["PathAccountSid", "DateSent", "projects.any"]
    assert '"DateSent<"' in found["description"]
    assert "additionalProperties" not in found
    assert list(clean(schema)["properties"]) == list(schema["properties"])


def test_tool_schema_with_plain_keys_alone_is_unchanged() -> None:
    schema = {
        "type": "object",
        "properties": {"a": TEXT},
        "additionalProperties": False,
    }
    assert clean(schema, plain_keys=True) == schema
    odd = {"type": "object", "properties": {"a b": TEXT, "a": TEXT}}
    found = clean(odd, plain_keys=True)
    assert found["properties"] == {"a": TEXT}
    assert "required" not in found


# Choices at the top of a schema: one object with the keys of all, and a note


NUMBER = {"type": "number"}


def united(schema: Json, **shared: Json) -> tuple[dict[str, Any], list[str]]:
    """Unite the choices of a schema; `shared` is what references mean."""
    node = dict(schema)
    notes = unite(node, lambda part: shared.get(part.get("$ref", ""), part))
    return node, notes


def test_schema_union_of_choices_is_one_object() -> None:
    schema = NOTION["notion-create-attachment"]
    node, notes = united(schema)
    assert list(node["properties"]) == [
        *("filename", "content", "source_url", "upload_id")
    ]
    assert "anyOf" not in node
    assert notes == [
        "at least one of these sets of keys: filename, content; filename, source_url; "
        "upload_id"
    ]


def test_schema_union_requires_what_all_choices_require() -> None:
    choices = [{"required": ["a", "b"]}, {"required": ["b", "c"]}]
    node, notes = united({"required": ["d"], "oneOf": choices})
    assert node["required"] == ["d", "b"]
    assert notes == ["exactly one of these sets of keys: a, b; b, c"]


def test_schema_union_property_allows_what_any_choice_allows() -> None:
    choices = [{"properties": {"a": TEXT, "b": TEXT}}, {"properties": {"a": NUMBER}}]
    node, (note,) = united({"properties": {"b": NUMBER}, "anyOf": choices})
    assert node["properties"] == {"b": NUMBER, "a": {"anyOf": [TEXT, NUMBER]}}
    assert note.startswith("anyOf: [")


# Values that a keyword may not have are dropped; the metaschema is the judge


KEYWORDS = sorted(schema_shapes._CHECKS)
# Their values hold schemas, which are shaped for themselves.
HOLDING = {
    *("anyOf", "oneOf", "allOf", "prefixItems", "properties", "patternProperties"),
    *("$defs", "definitions", "dependentSchemas", "items", "additionalProperties"),
    *("propertyNames", "not", "if", "then", "else", "contains", "contentSchema"),
    *("unevaluatedProperties", "unevaluatedItems", "pattern"),
}


def shaped(**node: Any) -> dict[str, Any]:
    shape(node)
    return node


@given(st.sampled_from([k for k in KEYWORDS if k not in HOLDING] + ["type"]), VALUES)
def test_schema_keyword_values_fit_the_metaschema(key: str, value: Any) -> None:
    Draft202012Validator.check_schema(shaped(**{key: value}))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": ["dict", None]}, {"type": ["object", "null"]}),
        ({"type": ["string", "any"]}, {}),
        ({"required": ["a", "a", 5]}, {"required": ["a"]}),
        ({"minLength": "1", "maxLength": -1, "minItems": 2}, {"minItems": 2}),
        ({"$schema": "x", "$id": "https://x/y"}, {"$id": "https://x/y"}),
        ({"dependencies": {"a": {}}}, {}),
    ],
)
def test_a_keyword_is_kept_spelled_or_dropped(
    node: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert shaped(**node) == expected
