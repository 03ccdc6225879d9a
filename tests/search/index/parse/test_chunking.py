"""Where files are cut."""

import time
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.files.text import split_lines
from byok.search.index.parse.chunking import BASE, USED, Definition, cut, outline
from byok.search.index.parse.queries import QUERIES
from byok.search.index.types import Span
from tests.fakes.samples import LANGUAGES

BODY = ["    " + "x" * 95] * 4  # 400 characters: enough for a chunk of its own


def definitions(text: bytes, language: str) -> list[Definition]:
    return outline(text, language).definitions


def spans(text: str, language: str) -> list[Span]:
    return cut(split_lines(text), definitions(text.encode(), language), prose=False)


def firsts(lines: Sequence[str], language: str) -> list[str]:
    """Return the first lines of the chunks."""
    text = "\n".join(lines) + "\n"
    return [lines[span.first] for span in spans(text, language)]


def covers(lines: Sequence[str], found: Sequence[Span]) -> bool:
    covered = [n for span in found for n in range(span.first, span.last + 1)]
    sizes = [
        sum(len(line) + 1 for line in lines[span.first : span.last + 1])
        for span in found
    ]
    return covered == list(range(len(lines))) and sizes == [s.chars for s in found]


LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "  ", "# x", "/*", "*/", '"""', "@a", "-- x", "```", "}"]),
        st.text(max_size=40),
        st.integers(100, 3000).map(lambda n: "x" * n),
    ),
    max_size=60,
)


@given(LINES, st.data(), st.booleans())
def test_chunks_hold_every_line_once(
    lines: list[str], data: st.DataObject, prose: bool
) -> None:
    ends = st.integers(0, max(0, len(lines) - 1))
    pairs = data.draw(st.lists(st.tuples(ends, ends), max_size=12))
    found = sorted((min(pair), max(pair)) for pair in pairs)
    made = [Definition(first, last, "kind", None) for first, last in found]
    assert covers(lines, cut(lines, made, prose=prose))


@pytest.mark.parametrize(
    "above",
    [
        ["# about", "# it"],
        ["@one", "@two(1)"],
        ["/// about", "#[derive(A)]"],
        ["/*", "about", "it", "*/"],
        ["/* about", "   it */", "// more"],
        ["/**", " * about", " */", "@Test"],
        ['@doc """', "about", '"""'],
        ["(* about", "it *)"],
        ["{- about", "   it -}", "-- more"],
        ["<#", "about", "#>"],
        ["[Test]"],
        ["%% about"],
        [";; about"],
    ],
    ids=" ".join,
)
def test_chunk_of_a_definition_includes_the_comment_above(above: list[str]) -> None:
    lines = [*BODY, *above, "definition", *BODY]
    at = len(BODY) + len(above)
    found = cut(lines, [Definition(at, len(lines) - 1, "kind", "g")], prose=False)
    assert [span.first for span in found] == [0, len(BODY)]


@pytest.mark.parametrize(
    "above",
    ["x = 1", "}", "", "#include <a>", "#define A", "# endif", "x */", '    """'],
)
def test_chunk_of_a_definition_leaves_out_other_lines_above(above: str) -> None:
    lines = [*BODY, above, "definition", *BODY]
    at = len(BODY) + 1
    found = cut(lines, [Definition(at, len(lines) - 1, "kind", "g")], prose=False)
    assert found[-1].first == at


def test_chunk_keeps_a_decorator_of_several_lines_with_its_function() -> None:
    lines = ["def f():", *BODY, "@one(", "    1,", ")", "@two", "def g():", *BODY]
    assert firsts(lines, "python") == ["def f():", "@one("]


def test_chunk_leaves_a_docstring_with_its_own_function() -> None:
    doc = ['    """About', *BODY, '    """']
    lines = ["def f(", *(f"    {'x' * 90}{n}," for n in "1234"), "):", *doc]
    assert firsts([*lines, "def g():", *doc], "python") == ["def f(", "def g():"]


def test_chunks_that_are_short_are_joined_up_to_the_target() -> None:
    lines = [f"def f{n}(): return {'x' * 80}" for n in range(100)]
    found = spans("\n".join(lines), "python")
    assert all(1500 < span.chars <= 1600 for span in found[:-1])
    assert len(found) == 7


def test_chunk_of_a_long_definition_is_split_behind_blank_lines() -> None:
    paragraph = [*BODY, *BODY, *BODY, ""]
    found = spans("\n".join(["def f():", *paragraph * 5]), "python")
    assert [span.first for span in found] == [0, 14, 27, 40, 53]


def test_chunks_of_text_are_cut_at_paragraphs() -> None:
    lines = [*BODY, "", *BODY, "# no heading", *BODY]
    assert [span.first for span in cut(lines, [], prose=False)] == [0, 5]


def test_chunks_of_prose_are_cut_at_headings_but_not_in_fences() -> None:
    lines = [*BODY, "# heading", *BODY, "```", "# comment", *BODY, "```", "#hashtag"]
    assert [span.first for span in cut(lines, [], prose=True)] == [0, 4]


def test_chunk_of_one_huge_line() -> None:
    lines = [*BODY, "", "x" * 1_000_000, "", *BODY]
    assert [span.first for span in cut(lines, [], prose=True)] == [0, 5, 7]
    assert [span.first for span in cut(["x" * 10**6], [], prose=False)] == [0]


@pytest.mark.parametrize(
    "lines",
    [
        ["a"],
        [""],
        ["a", ""],
        ["# a"],
        ["// a"],
        ["@a"],
        ["*/"],
        ["x */", "y"],
        ['"""', "y"],
        ["-}", "{-"],
    ],
    ids=" ".join,
)
def test_chunking_time_is_linear_in_lines(lines: list[str]) -> None:
    count = 20_000
    text = lines * (count // len(lines))
    every = [Definition(n, count, "kind", None) for n in range(count)]
    last = [Definition(count - 1, count, "kind", None)] * 100
    for found in ([], every, last):
        begun = time.process_time()
        assert covers(text, cut(text, found, prose=True))
        assert time.process_time() - begun < 5  # quadratic: minutes


# Definitions: order, lines, components, languages that are not there


def test_a_definition_has_lines_a_kind_and_a_name() -> None:
    text = b"import a\n\nclass A:\n    def f(self):\n        pass\n"
    assert definitions(text, "python") == [
        Definition(2, 4, "class_definition", "A"),
        Definition(3, 4, "function_definition", "f"),
    ]


def test_outer_definitions_come_before_the_inner_ones() -> None:
    for language, (text, _) in LANGUAGES.items():
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_query_finds_what_its_sample_defines(language: str) -> None:
    text, names = LANGUAGES[language]
    found = definitions(text.encode(), language)
    assert [one.name for one in found if one.name] == names.split()


def test_query_of_every_language_has_a_sample() -> None:
    assert QUERIES.keys() <= LANGUAGES.keys()


def test_query_finds_only_structures_with_a_body() -> None:
    used = b"struct foo *x;\nstruct foo *f(struct bar b) { return 0; }\n"
    for language in ("c", "cpp", "objc"):
        assert [one.name for one in definitions(used, language)] == ["f"]


def test_query_finds_only_variables_of_the_module() -> None:
    text = b"const a = 1\nfunction f() { const b = 2; let c }\nexport let d = 3\n"
    for language in ("javascript", "typescript", "tsx"):
        assert [one.name for one in definitions(text, language)] == ["a", "f", "d"]


# References: what is called, used as a type, extended; not comments, texts, variables

REFERENCES = {
    "python": (
        "@deco\nclass A(Base, m.Mixin):\n def f(self, p: P) -> list[Q]:\n"
        "  'said()'\n  # noted()\n  run(v); self.go(Made())\n",
        "P Q Made deco go run",
        "Base Mixin",
    ),
    "go": (
        "package a\n// noted()\ntype S struct { Held; *Kept; f Field }\n"
        'func (s *S) Run(x Arg) Ret { call(); x.meth("said()"); pkg.Fn(); T{} }\n',
        "Arg Field Fn Held Kept Ret S T call meth",
        "Held Kept",
    ),
    "java": (
        "class A extends B<C> implements D, E<F> { G g; "
        "H m(K k) { n(); o.p(); new Q(); } }",
        "B C D E F G H K Q n o p",
        "B D E",
    ),
    "typescript": (
        "class A extends B implements C<D> { f: E; m(): G { h(); i.j(); new K(); } }",
        "C D E G K h j",
        "B C",
    ),
    "javascript": ("class A extends B { m() { h(); i.j(); new K(); } }", "K h j", "B"),
    "tsx": ("const x = () => <Foo a={g()}><Bar/></Foo>;", "Bar Foo g", ""),
    "rust": (
        "struct A { f: B }\nimpl C<T> for A { "
        "fn g(&self) -> E { h(); x.i(); J::k(); l!(); } }\nimpl A {}\n",
        "B C E J T h i k l",
        "C",
    ),
    "c": ("struct a *f(b_t x) { g(x); p->h(); /* i() */ }", "a b_t g h", ""),
    "cpp": (
        "class A : public B, n::C { F g() { i(); j.k(); n::l(); } };",
        "B C F i k l",
        "B C",
    ),
    "csharp": (
        "class A : B, IC<D> { E? f; G m(H h) { i(); J.k(); new L(); } }",
        "D E G H IC J L i k",
        "B IC",
    ),
    "kotlin": (
        "class A : B(), C, D<E> { fun f(g: G): H { i(); j.k() } }",
        "B C D E G H i k",
        "B C D",
    ),
    "php": (
        "<?php class A extends B implements C { use E; "
        "function f(G $g): H { i(); $j->k(); L::m(); } }",
        "G H L i k m",
        "B C E",
    ),
    "ruby": (
        "class A < B\n include C\n def f; g(1); H.new; end\nend\n",
        "H g include new",
        "B C",
    ),
    "scala": (
        "class A extends B with C[D] { def f(g: G) = j.k(2) }",
        "B C D G k",
        "B C",
    ),
    "swift": ("class A: B, C { func f(g: G) { i(); j.k() } }", "B C G i k", "B C"),
    "lua": ("local function f() g(); h.i(); j:k() end", "g i k", ""),
    "dart": (
        "class A extends B implements D { E f() { h(); i.j(); } }",
        "B D E h j",
        "B D",
    ),
}


@pytest.mark.parametrize("language", REFERENCES)
def test_what_a_text_refers_to_is_known_by_its_parser(language: str) -> None:
    text, used, bases = REFERENCES[language]
    found = {name for _, name in outline(text.encode(), language).references}
    wanted = {USED + name.encode() for name in used.split()}
    assert found == wanted | {BASE + name.encode() for name in bases.split()}


METHOD = "  def find(name: String): Int = {\n    names.size + name.size\n  }\n\n"


@pytest.mark.parametrize(
    ("language", "text", "most"),
    [
        ("scala", f"class Lynx {{\n{METHOD * 100}}}\n", 2**20),
        ("python", "def f(x):\n    return x\n" + "# what it returned\n" * 3000, 2**24),
    ],
    ids=["scala", "python"],
)
def test_a_parser_keeps_little_memory_of_a_text(
    language: str, text: str, most: int
) -> None:
    # Each piece that is read stays in memory. The parser of Scala reads many twice,
    # that of Python all lines of a comment again from each.
    raw = text.encode()
    outline(raw, language)
    tracemalloc.start()
    try:
        outline(raw, language)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < most
