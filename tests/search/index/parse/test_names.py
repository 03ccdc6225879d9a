"""Definitions have marks by which their exact names are found."""

import pytest

from byok.search.index.parse.chunking import definitions
from byok.search.index.parse.prepare import (
    NameKind,
    name_kind,
    name_marks,
    plain_name,
    prepare,
)
from tests.fakes.language_samples import SAMPLES


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Foo", "Foo"),
        ("Outer::Inner::run", "run"),
        ("App\\Http\\Controller", "Controller"),
        ("byok.search.index.Store", "Store"),
        ("$ZodError", "ZodError"),
        ("empty?", "empty"),
        ("save!", "save"),
        ("Get-Item", "Get-Item"),
        ("naïve", "naïve"),
        ("x", "x"),
        ("a" * 64, "a" * 64),
        ("a" * 65, ""),
        ("x." * 10**6 + "end", "end"),
        ("operator==", ""),
        ("~Foo", ""),
        ("Foo<int>", ""),
        (".btn:hover > a", ""),
        ("[a, b]", ""),
        ("7", ""),
        ("名", ""),
        ("", ""),
    ],
)
def test_a_name_is_the_last_part_of_what_a_definition_says(
    name: str, plain: str
) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("node", "name", "marks"),
    [
        ("class_definition", "Foo", [":t:Foo", ":T:foo"]),
        ("class_method_definition", "run", [":f:run"]),
        ("lexical_declaration", "MAX", [":o:MAX", ":O:max"]),
        ("impl_item", "Foo", []),
        ("rule_set", "body", []),
        ("function_definition", "operator+", []),
    ],
)
def test_marks_of_a_definition_keep_the_case_and_a_folded_form(
    node: str, name: str, marks: list[str]
) -> None:
    assert name_marks(node, name) == marks


TYPES = """
class_definition class_declaration class_specifier struct_specifier struct_item
interface_declaration enum_item trait_item type_spec type_definition record_declaration
object_declaration protocol_declaration type_alias_statement message union_specifier
annotation_type_declaration data_type create_table contract_declaration
"""
FUNCTIONS = """
function_definition function_item method_declaration method_signature method
singleton_method constructor_declaration subroutine_declaration_statement fun_decl
preproc_function_def
macro_definition create_function function_signature init_declaration rpc defun
"""


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        *((node, NameKind.TYPE) for node in TYPES.split()),
        *((node, NameKind.FUNCTION) for node in FUNCTIONS.split()),
        ("namespace_definition", NameKind.OTHER),
        ("mod_item", NameKind.OTHER),
        ("impl_item", None),
    ],
)
def test_kinds_of_nodes_say_what_a_name_stands_for(
    node: str, kind: NameKind | None
) -> None:
    assert name_kind(node) is kind


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_marks_of_any_language_have_no_space(language: str) -> None:
    """They stand between spaces, and no name in code makes one that is not a name."""
    for one in definitions(SAMPLES[language][0].encode(), language):
        for mark in name_marks(one.kind, one.name or ""):
            assert len(mark.split()) == 1
            assert mark[0] == mark[2] == ":"


def test_marks_stand_with_the_chunk_that_defines_the_name() -> None:
    body = "    return 'words of a body that is long enough for a chunk'\n" * 6
    text = f"class Engine:\n{body}def start():\n{body}"
    first, second = prepare("a.py", text.encode()).documents
    assert first.marks == ":t:Engine :T:engine"
    assert second.marks == ":f:start"
    assert ":" not in first.body + first.symbols + second.body + second.symbols


def test_a_name_that_is_defined_often_has_its_marks_once() -> None:
    text = "@overload\ndef run(): ...\n" * 3
    [one] = prepare("a.py", text.encode()).documents
    assert one.marks == ":f:run"
