"""Definitions: order, lines, components, languages that are not there."""

import time

import pytest

from byok.search.index.parse.chunking import Definition, definitions
from byok.search.index.parse.queries import QUERIES
from tests.fakes.language_samples import SAMPLES


def test_a_definition_has_lines_a_kind_and_a_name() -> None:
    text = b"import a\n\nclass A:\n    def f(self):\n        pass\n"
    assert definitions(text, "python") == [
        Definition(2, 4, "class_definition", "A"),
        Definition(3, 4, "function_definition", "f"),
    ]


def test_outer_definitions_come_before_the_inner_ones() -> None:
    for language, (text, _) in SAMPLES.items():
        found = definitions(text.encode(), language)
        assert found == sorted(found, key=lambda one: (one.first_line, -one.last_line))


@pytest.mark.parametrize("language", ["json", "html", "yaml", "markdown", "nonsense"])
def test_a_language_without_a_query_has_no_definitions(language: str) -> None:
    assert definitions(b"{" * 10_000_000, language) == []  # and is not parsed


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"<script>function f() {}</script>", ["f"]),
        (b"<script setup lang='ts'>interface I {}</script>", ["I"]),
        (b"<script>let a</script>\n<script lang=ts>type B = 1</script>", ["a", "B"]),
        (b"<SCRIPT>let a</SCRIPT>", ["a"]),
        (b"<script src='x'></script>", []),
        (b"<script>let a", []),
        (b"", []),
    ],
)
def test_definitions_in_the_scripts_of_a_component_are_found(
    text: bytes, names: list[str]
) -> None:
    for language in ("vue", "svelte"):
        assert [d.name for d in definitions(text, language) if d.name] == names


@pytest.mark.parametrize("text", [b"<script>\n", b"<script\n", b"</script>\n"])
def test_definitions_of_a_component_take_linear_time(text: bytes) -> None:
    begun = time.process_time()
    definitions(text * 50_000, "vue")
    assert time.process_time() - begun < 5  # quadratic: minutes


def test_definitions_of_a_component_have_the_lines_of_the_file() -> None:
    text = b"<template>\n<a/>\n</template>\n\n<script>\n\nlet a\n</script>\n<style>\n"
    found = {(one.first_line, one.kind) for one in definitions(text, "vue")}
    assert found == {
        (0, "template"),
        (4, "script"),
        (6, "lexical_declaration"),
        (8, "style"),
    }


def test_definition_of_a_deep_declarator() -> None:
    deep = b"int " + b"(" * 50 + b"f" + b")" * 50 + b"(void) { return 1; }"
    assert len(definitions(deep, "c")) == 1
    assert definitions(b"char *(*f(int a))[3] { }", "c")[0].name == "f"


def test_definitions_in_a_deep_tree() -> None:
    text = b"function f() {" + b"[" * 20_000 + b"]" * 20_000 + b"}"
    assert [one.name for one in definitions(text, "javascript")] == ["f"]


def test_definitions_in_bytes_that_are_no_text() -> None:
    assert definitions(b"def \xff\xfe(): pass\ndef g(): pass", "python")[-1].name == "g"


# Each language has a sample, and its query finds what the sample defines


@pytest.mark.parametrize("language", SAMPLES)
def test_query_finds_what_its_sample_defines(language: str) -> None:
    text, names = SAMPLES[language]
    found = definitions(text.encode(), language)
    assert [one.name for one in found if one.name] == names.split()


def test_query_of_every_language_has_a_sample() -> None:
    assert QUERIES.keys() <= SAMPLES.keys()


def test_query_finds_only_structures_with_a_body() -> None:
    used = b"struct foo *x;\nstruct foo *f(struct bar b) { return 0; }\n"
    for language in ("c", "cpp", "objc"):
        assert [one.name for one in definitions(used, language)] == ["f"]


def test_query_finds_only_variables_of_the_module() -> None:
    text = b"const a = 1\nfunction f() { const b = 2; let c }\nexport let d = 3\n"
    for language in ("javascript", "typescript", "tsx"):
        assert [one.name for one in definitions(text, language)] == ["a", "f", "d"]
