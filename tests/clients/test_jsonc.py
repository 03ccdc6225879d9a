"""Single changes of JSON with comments."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.clients import jsonc
from byok.clients.jsonc import leaves, read
from byok.clients.settings_text import MISSING, Leaf, SettingPath, TextEditor
from tests.fakes.settings_files import STRANGE

EDITOR = TextEditor(jsonc)
put, restore, drop = EDITOR.put, EDITOR.restore, EDITOR.drop
BLANKS = st.sampled_from(
    ["", " ", "\n", "\n\t", "  \n    ", " // c: {,\n", "/* } */", "\n\n// a\n/* b\n*/ "]
)
NAMES = st.sampled_from(["a", "b", "a.b", "ü", "//", "x y", "{"]) | st.text(max_size=3)
SCALARS = st.sampled_from(["1", "-2.5e3", "true", "null", '"//"', '"\\"}"', '"é\\n"'])


@st.composite
def lists(draw: st.DrawFn, items: st.SearchStrategy[str], brackets: str) -> str:
    parts = draw(st.lists(items, max_size=4))
    blanks = [draw(BLANKS) for _ in range(2 * len(parts) + 2)]
    text = ",".join(
        f"{blanks[2 * n]}{part}{blanks[2 * n + 1]}" for n, part in enumerate(parts)
    )
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    return f"{brackets[0]}{text}{comma}{blanks[-1]}{brackets[1]}"


@st.composite
def members(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    name = json.dumps(draw(NAMES), ensure_ascii=draw(st.booleans()))
    return f"{name}{draw(BLANKS)}:{draw(BLANKS)}{draw(values)}"


VALUES = st.recursive(
    SCALARS,
    lambda inner: lists(inner, "[]") | lists(members(inner), "{}"),
    max_leaves=8,
)
TEXTS = st.builds(
    lambda before, body, behind: before + body + behind,
    BLANKS,
    lists(members(VALUES), "{}"),
    BLANKS,
) | st.sampled_from(["", "\n", "// c", "/* a */\n"])
PATHS: st.SearchStrategy[SettingPath] = st.sampled_from(
    [("new",), ("a",), ("a.b",), ("new", "er"), ("a", "b"), ("p", "q", "r")]
)


def others(text: str, path: SettingPath) -> list[Leaf]:
    """Return the values that are neither at the path nor on the way to it."""
    return [
        leaf
        for leaf in leaves(text)
        if leaf.path[: len(path)] != path and path[: len(leaf.path)] != leaf.path
    ]


@given(TEXTS, PATHS, st.sampled_from(["v", "http://x/", '"\\', "☃", ""]))
def test_jsonc_put_sets_the_value_and_changes_no_other(
    text: str, path: SettingPath, value: str
) -> None:
    try:
        new = put(text, path, value)
    except ValueError as error:  # the random text has no place for it
        assert "twice" in str(error) or "is no object" in str(error)
        return
    assert read(new, path) == value
    assert others(new, path) == others(text, path)
    assert put(new, path, value) == new
    if not isinstance(read(text, path), list | dict):  # else comments go with the value
        lines = (line.strip() for line in text.splitlines())
        comments = [line for line in lines if line.startswith("//")]
        assert [line for line in comments if line not in new] == []


@given(TEXTS, PATHS)
def test_jsonc_drop_takes_the_value_and_no_other(text: str, path: SettingPath) -> None:
    try:
        new = drop(text, path)
    except ValueError as error:
        assert "twice" in str(error)
        return
    assert read(new, path) is MISSING
    assert others(new, path) == others(text, path)


@given(TEXTS, st.sampled_from(["v", "w"]))
def test_jsonc_restore_undoes_a_change_of_a_value(text: str, value: str) -> None:
    try:
        if read(text, ("a",)) is MISSING:
            return
        assert restore(put(text, ("a",), value), ("a",), text) == text
    except ValueError as error:
        assert "twice" in str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n    "k": "v"\n}\n'),
        ("// c", '// c\n{\n    "k": "v"\n}\n'),
        ("{}", '{\n    "k": "v"\n}'),
        ("{ /* c */ }", '{ /* c */\n    "k": "v"\n }'),
        ("{\n\t// c\n}", '{\n\t// c\n    "k": "v"\n}'),
        ('{"a": 1}', '{"a": 1, "k": "v"}'),
        ('{"a": 1,}', '{"a": 1, "k": "v",}'),
        ('{\n  "a": 1\n}', '{\n  "a": 1,\n  "k": "v"\n}'),
        ('{\n\t"a": 1, // c\n}', '{\n\t"a": 1, // c\n\t"k": "v",\n}'),
        ('{\n "a": 1 // c\n // d\n}', '{\n "a": 1, // c\n "k": "v"\n // d\n}'),
        ('{\n "a": 1 /* c\n*/\n}', '{\n "a": 1, /* c\n*/\n "k": "v"\n}'),
        ('{ "a": 1,\n  "b": 2 }', '{ "a": 1,\n  "b": 2,\n  "k": "v" }'),
        ('{"k": /* c */ 1 /* d */}', '{"k": /* c */ "v" /* d */}'),
    ],
)
def test_jsonc_put_follows_the_layout(text: str, expected: str) -> None:
    assert put(text, ("k",), "v") == expected


def test_jsonc_put_makes_objects_on_the_way() -> None:
    text = '{\n  "a": {\n    "b": 1\n  }\n}'
    new = put(text, ("a", "c", "d"), "v")
    assert new == (
        '{\n  "a": {\n    "b": 1,\n    "c": {\n      "d": "v"\n    }\n  }\n}'
    )


@pytest.mark.parametrize(
    ("text", "path", "what"),
    [
        ('{"a": 1}', ("a", "b"), "a is no object"),
        ("[1]", ("a",), "the whole file is no object"),
        ('{"a": 1, "a": 2}', ("a",), '"a" stands there twice'),
        ('{"a": 1', ("a",), "line 1"),
    ],
)
def test_jsonc_put_refuses(text: str, path: SettingPath, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        put(text, path, "v")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "a": 1,\n  "k": 2\n}', '{\n  "a": 1\n}'),
        ('{\n  "a": 1, // c\n  "k": 2\n}', '{\n  "a": 1 // c\n}'),
        ('{\n  "k": {\n    "x": 1\n  },\n  "a": 1\n}', '{\n  "a": 1\n}'),
        ('{"a": 1, "k": 2}', '{"a": 1}'),
        ('{"k": 2, "a": 1}', '{"a": 1}'),
        ('{\n  "k": 2, // mine\n  "a": 1\n}', '{\n  // mine\n  "a": 1\n}'),
        ('{"k": 1}', "{}"),
        ("{}", "{}"),
        ("", ""),
    ],
)
def test_jsonc_drop_leaves_the_layout(text: str, expected: str) -> None:
    assert drop(text, ("k",)) == expected


def test_jsonc_drop_of_what_is_not_there_is_nothing() -> None:
    assert drop('{"a": 1}', ("a", "b")) == drop('{"a": 1}', ("c", "d")) == '{"a": 1}'


def test_jsonc_restore_wants_a_former_value() -> None:
    with pytest.raises(ValueError, match="not in the former text"):
        restore("{}", ("a",), "{}")


def test_jsonc_reads_values() -> None:
    text = '{"a": {"b": [1, null]}, "c": "☃"}'
    assert read(text, ("a",)) == {"b": [1, None]}
    assert read(text, ("a", "b")) == [1, None]
    assert read(text, ("c", "d")) is MISSING
    assert [leaf.text for leaf in leaves('{"a": {}, "b": [1, []]}')] == ["", "1", ""]


PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=40)
@given(PLAIN_VALUES)
def test_jsonc_reads_what_the_standard_library_writes(value: Any) -> None:
    assert read(json.dumps(value, indent=1, ensure_ascii=False), ()) == value


@pytest.mark.parametrize("text", ["", " \n\t", "// only this", "/* a */ // b\n"])
def test_jsonc_without_a_value_is_no_node(text: str) -> None:
    assert read(text, ()) is MISSING


def test_jsonc_reads_comments_and_last_commas() -> None:
    value = read(STRANGE, ())
    assert value["regex"] == "^//.*/\\*$"
    assert value["between"] == "x"
    assert value["window.title"].endswith('"quoted" \\')
    assert read("[1, /* , */ 2, // ,\n]", ()) == [1, 2]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"a": 1', "line 1: a comma or a closing bracket is missing"),
        ('{\n"a": 1\n"b": 2}', "line 3: a comma or"),
        ('{"a" 1}', "line 1: there is no colon"),
        ("{a: 1}", "line 1: there is no name in quotes"),
        ("{'a': 1}", "line 1: there is no name in quotes"),
        ('{"a": }', "line 1: there is no value"),
        ('{"a": 01}', "line 1: there is no value"),
        ('{"a": 1.}', "line 1: there is no value"),
        ('{"a": nul}', "line 1: there is no value"),
        ('{"a": "b\n"}', "line 1: this text does not end"),
        ("{/* for ever }", "line 1: there is no name"),
        ('{"a": 1,, }', "line 1: there is no name"),
        ("[,]", "line 1: there is no value"),
        ("{} {}", "line 1: there is something behind"),
        ('{"\\x": 1}', "line 1: a name has an escape"),
        ("[" * 5000 + "]" * 5000, "line 1: it is nested too deeply"),
    ],
)
def test_jsonc_that_cannot_be_read_is_told_with_its_line(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        read(text, ())


@pytest.mark.parametrize("text", ["/*" * 50_000, "/" * 200_000, '"\\' * 50_000])
def test_jsonc_of_a_stranger_is_read_in_linear_time(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        read("{" + text, ())


def test_a_member_that_is_not_there_is_not_taken_out() -> None:
    text = '{"a": 1}'
    assert jsonc.without_path(text, ("b",)) == text
