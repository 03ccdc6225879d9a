"""File versions to chunks and terms."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from byok.search.index.files.text import decode, split_lines
from byok.search.index.parse import tokens
from byok.search.index.parse.chunking import outline
from byok.search.index.parse.prepare import name_marks, plain_name, prepare, skip_reason
from byok.search.index.types import MAX_BYTES, SkipReason
from tests.fakes.samples import LANGUAGES

ROOT = Path(__file__).parents[4]
GENERATED = """
package-lock.json a/pnpm-lock.yaml yarn.lock Cargo.lock poetry.lock go.sum uv.lock
composer.lock Gemfile.lock a.min.js a.min.css a.js.map x.snap a.MIN.JS
"""
BODY = b"    return 'some words of a body that is quite long and says little'\n" * 6


def test_a_document_has_the_terms_of_its_chunk() -> None:
    content = b"def parseHTTPResponse():\n" + BODY + b"def other():\n" + BODY
    prepared = prepare("lib/http-parser.py", content)
    first, second = prepared.documents
    assert first.symbols == tokens.join_terms("parseHTTPResponse")
    assert second.symbols == "other"
    assert first.body == tokens.join_terms("def parseHTTPResponse():" + BODY.decode())
    assert prepared.path_terms == "http parser http parser lib"
    assert [span[:2] for span in prepared.spans] == [(0, 6), (7, 13)]
    assert (prepared.size, prepared.reason) == (len(content), None)


def test_a_name_is_cut_and_loses_its_scope() -> None:
    [one] = prepare("a.cpp", b"void Outer::Inner::run() {}\n").documents
    assert one.symbols == "run"
    [one] = prepare("a.py", b"def " + b"a" * 70 + b"(): pass\n").documents
    assert one.symbols == "a" * 64


def test_plain_leaves_the_parser_out() -> None:
    [one] = prepare("a.py", b"def f(): pass\n", plain=True).documents
    assert (one.body, one.symbols) == ("def pass", "")


@pytest.mark.parametrize(
    "path",
    GENERATED.split(),
)
def test_what_tools_write_is_generated(path: str) -> None:
    assert prepare(path, b"text").reason is SkipReason.GENERATED


def test_a_notebook_is_found_by_its_sources_at_the_lines_of_the_file() -> None:
    picture = {"image/png": "iVBOR" + "A" * 40_000, "text/plain": ["outputword"]}
    made = {
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "\n", "proseword\n"]},
            {
                "cell_type": "code",
                "outputs": [{"data": picture, "source": ["outputword"]}],
                "source": ["def groupRegions(df):\n", "    return codeword(df)"],
            },
            {"cell_type": "raw", "source": ["rawword"]},
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
    }
    content = json.dumps(made, indent=1).encode()
    prepared = prepare("nb.ipynb", content)
    lines = content.decode().split("\n")
    shown = ["\n".join(lines[span.first : span.last + 1]) for span in prepared.spans]
    assert prepared.reason is None
    assert ["proseword" in text for text in shown] == [True, False]
    assert ["codeword" in text for text in shown] == [False, True]
    assert [len(text) + 1 for text in shown] == [span.chars for span in prepared.spans]
    assert prepared.documents[1].symbols == tokens.join_terms("groupRegions")
    said = " ".join(document.body for document in prepared.documents)
    assert "proseword" in said
    assert not {"outputword", "rawword", "ivbor"} & set(said.split())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{\n", SkipReason.BROKEN),
        (b"[\n]", SkipReason.BROKEN),
        (b'{\n"a": 1}', SkipReason.BROKEN),
        (b"[\n" * 200_000, SkipReason.BROKEN),
        (b'{"cells": []}', SkipReason.MINIFIED),
        (b"\n" * (MAX_BYTES + 1), SkipReason.TOO_LARGE),
    ],
)
def test_a_notebook_that_cannot_be_read_says_why(
    content: bytes, reason: SkipReason
) -> None:
    assert prepare("a.ipynb", content).reason is reason


@pytest.mark.parametrize("path", ["a.png", "b/C.JPG", "x.so", "m.pyc", "a.tar.gz"])
def test_an_extension_can_say_binary(path: str) -> None:
    assert skip_reason(path) is SkipReason.BINARY
    assert prepare(path, b"text").reason is SkipReason.BINARY


@pytest.mark.parametrize("path", ["a.py", "lock", "map", "a.lock.py", "png", "x/so"])
def test_other_paths_are_looked_into(path: str) -> None:
    assert skip_reason(path) is None


@pytest.mark.case("B74")
def test_a_file_of_one_mebibyte_is_read_and_one_byte_more_is_not() -> None:
    content = b"some words\n" * (MAX_BYTES // 11) + b"x" * (MAX_BYTES % 11)
    assert len(content) == MAX_BYTES
    assert prepare("a.txt", content).spans
    prepared = prepare("a.txt", content + b"x")
    assert (prepared.reason, prepared.spans) == (SkipReason.TOO_LARGE, ())


@given(st.binary(max_size=300), st.sampled_from(["a.py", "b.md", "c.vue", "d.txt"]))
def test_any_bytes_are_prepared_and_covered(content: bytes, path: str) -> None:
    prepared = prepare(path, content)
    assert len(prepared.spans) == len(prepared.documents)
    text = decode(content)
    if not isinstance(text, SkipReason):
        lines = sum(span.last - span.first + 1 for span in prepared.spans)
        assert lines == len(split_lines(text))
    else:
        assert prepared.reason is text


@pytest.mark.slow
def test_each_process_prepares_the_same() -> None:
    script = (
        "from tests.fakes.samples import LANGUAGES\n"
        "from byok.search.index.parse.prepare import prepare\n"
        "for path in ('a.py', 'b.ts', 'c.cs', 'd.vue', 'e.md'):\n"
        "    for text, _ in LANGUAGES.values():\n"
        "        print(prepare(path, text.encode() * 2))\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert other.splitlines() == [
        str(prepare(path, text.encode() * 2))
        for path in ("a.py", "b.ts", "c.cs", "d.vue", "e.md")
        for text, _ in LANGUAGES.values()
    ]


@pytest.mark.case("B76")
@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.json", b"[" * 1_000_000),
        ("a.html", b"<a>\n" * 200_000),
        ("a.yaml", random.Random(1).randbytes(500_000).hex(" ", 30).encode()),
    ],
)
def test_data_that_overtaxes_a_parser_is_not_parsed(path: str, content: bytes) -> None:
    assert prepare(path, content) == prepare(path, content, plain=True)


# Definitions have marks by which their exact names are found


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


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_marks_of_any_language_have_no_space(language: str) -> None:
    """They stand between spaces, and no name in code makes one that is not a name."""
    for one in outline(LANGUAGES[language][0].encode(), language).definitions:
        for mark in name_marks(one.kind, one.name or ""):
            assert len(mark.split()) == 1
            assert mark[0] == mark[2] == ":"


def test_marks_stand_with_the_chunk_that_defines_or_uses_the_name() -> None:
    body = "    return 'words of a body that is long enough for a chunk'\n" * 6
    text = f"class Engine(Motor):\n{body}def start():\n    Key().turn()\n{body}"
    first, second = prepare("a.py", text.encode()).documents
    assert first.marks == ":t:Engine :T:engine :b:Motor"
    assert second.marks == ":f:start :u:Key :u:turn"
    assert ":" not in first.body + first.symbols + second.body + second.symbols


def test_texts_of_a_qt_program_are_no_typescript_and_use_no_names() -> None:
    text = '<?xml version="1.0"?>\n<TS><source>Use parse(x) of class Foo { run() {} }'
    [document] = prepare("a_de.ts", text.encode()).documents
    assert document.marks == ""


# Text to terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("parseHTTPResponse", ["pars", "http", "respons", "=parsehttpresponse"]),
        ("snake_case_name", ["snake", "case", "name", "=snakecasename"]),
        ("repairing repaired repairs", ["repair", "repair", "repair"]),
        ("$scope _private x", ["scope", "privat"]),
        ("sha256 7 42 123456789", ["sha", "=sha256", "42"]),
        ("größe naïve привет", ["größe", "naïve", "привет"]),
        ("你好吗 字", ["你好", "好吗", "字"]),
        ("a.b->c != d", []),
        ("", []),
    ],
)
def test_tokens_of_identifiers_are_split_and_stemmed(
    text: str, terms: list[str]
) -> None:
    assert list(tokens.terms(text)) == terms
    assert tokens.join_terms(text).split() == terms


def test_tokens_of_a_path_count_its_name_twice_and_four_folders() -> None:
    found = tokens.path_terms("one/two/three/four/five/read-file.test.py")
    assert found.count("read") == found.count("file") == found.count("test") == 2
    assert "one" not in found
    assert {"two", "three", "four", "five"} <= set(found)


def test_tokens_of_a_name_that_is_all_extension() -> None:
    assert "gitignor" in tokens.path_terms(".gitignore")


@given(st.text())
@example("\u16800")
def test_tokens_have_no_space(text: str) -> None:
    for term in tokens.terms(text):
        assert term
        assert not any(char.isspace() for char in term)
