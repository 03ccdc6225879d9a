"""The names that a question says, and what it wants to know of them."""

import time

import pytest

from byok.search.retrieval.names import (
    NameIntent,
    NameMatch,
    NameQuestion,
    definition_marks,
    find_names,
    identifier_of,
)

# What counts as a request that is one identifier


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Foo", "Foo"),
        ("foo_bar", "foo_bar"),
        ("  Foo\n", "Foo"),
        ("`Foo`", "Foo"),
        ('"Foo"', "Foo"),
        ("\u201cFoo\u201d", "Foo"),
        ("A::B", "B"),
        ("::A::B", "B"),
        ("a.b()", "b"),
        ("`a.b()`", "b"),
        ("a.b(c, d)", "b"),
        ("a->b", "b"),
        ("$this->x", "x"),
        ("$x", "x"),
        ("#method", "method"),
        ("Foo#method", "method"),
        ("@decorator", "decorator"),
        ("App\\Http\\Controller", "Controller"),
        ("Foo<T>::bar", "bar"),
        ("Vec<u8>", "Vec"),
        ("println!", "println"),
        ("println!()", "println"),
        ("empty?", "empty"),
        ("foo?.bar", "bar"),
        ("Get-Item", "Get-Item"),
        ("client.go()", "go"),
        ("mutex.lock", "lock"),
        ("__init__", "__init__"),
        ("g", "g"),
    ],
)
def test_identifier_of_a_request_is_its_last_part(text: str, name: str) -> None:
    assert identifier_of(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "``",
        "where is Foo defined",
        "class Foo",
        "Foo Bar",
        "Foo, Bar",
        "foo (the function)",
        "context.go",
        "go.mod",
        "Cargo.lock",
        "setup.cfg",
        "requirements.txt",
        "src/context.go",
        "README.md",
        "a/b",
        "1.2.3",
        "42",
        "用户登录",
        "x" * 301,
        "a\nb",
        "operator==",
        "...",
        "a..b",
        "\ud800",
    ],
)
def test_identifier_is_missing_in_other_requests(text: str) -> None:
    assert identifier_of(text) == ""


def test_marks_of_types_count_most_in_any_case() -> None:
    assert definition_marks("Foo") == {
        ":t:Foo": 1.0, ":T:foo": 1.0,
        ":f:Foo": 0.6, ":F:foo": 0.6,
        ":o:Foo": 0.6, ":O:foo": 0.6,
    }  # fmt: skip


# What a question wants to know of a name


@pytest.mark.parametrize(
    ("text", "name", "wanted"),
    [
        ("who calls parse_header", "parse_header", NameIntent.USES),
        ("Who calls dispatch?", "dispatch", NameIntent.USES),
        ("where is RetryPolicy used", "RetryPolicy", NameIntent.USES),
        ("show me what calls `run` and its tests", "run", NameIntent.USES),
        ("callers of Utils.getBound", "getBound", NameIntent.USES),
        ("Find usages of the function flush in the writer", "flush", NameIntent.USES),
        ("how is get_proxies used in the client", "get_proxies", NameIntent.USES),
        ("all places that reference MAX_RETRIES", "MAX_RETRIES", NameIntent.USES),
        ("谁调用了 parse_header", "parse_header", NameIntent.USES),
        ("RetryPolicy在哪里被使用", "RetryPolicy", NameIntent.USES),
        ("what implements Storage", "Storage", NameIntent.IMPLEMENTATIONS),
        ("What types implement the Sink trait?", "Sink", NameIntent.IMPLEMENTATIONS),
        (
            "which handlers inherit from Base, and how",
            "Base",
            NameIntent.IMPLEMENTATIONS,
        ),
        (
            "find all implementations of IEnricher",
            "IEnricher",
            NameIntent.IMPLEMENTATIONS,
        ),
        ("subclasses of ServiceMethod", "ServiceMethod", NameIntent.IMPLEMENTATIONS),
        ("Storage 的子类有哪些", "Storage", NameIntent.IMPLEMENTATIONS),
        ("哪些类实现了 Storage 接口", "Storage", NameIntent.IMPLEMENTATIONS),
        ("fix a crash in parse_header()", "parse_header", NameIntent.NOTHING),
        ("why does `flush` block", "flush", NameIntent.NOTHING),
    ],
)
def test_question_about_a_name_says_what_it_wants(
    text: str, name: str, wanted: NameIntent
) -> None:
    assert find_names(text)[0][:2] == (name, wanted)


@pytest.mark.parametrize(
    "text",
    [
        "where is the session cookie signed",
        "what uses retry logic for failed requests",
        "which code uses it",
        "the parser uses regex for tokens",
        "allow that users create a form",
        "crash in http/client.py and README.md",
    ],
)
def test_question_without_a_name_has_none(text: str) -> None:
    assert find_names(text) == ()


@pytest.mark.parametrize(
    ("defined", "used", "count", "sentence"),
    [
        (["a.py"], ["x/b.py", "y/c.py"], 2, "is defined in a.py and used in 2 files."),
        (
            ["a.py", "b.py", "c.py"],
            ["x/b.py"],
            1,
            "is defined in a.py and 2 more files and used in 1 file.",
        ),
        (
            [],
            ["x/b.py", "x/c.py", "y/d.py"],
            3,
            "is not defined here but used in 3 files, most in x (2).",
        ),
        (["a.py"], [], 0, "is defined in a.py; no place was found where it is used."),
        (
            ["a.py"],
            ["x/b.py"] * 9,
            1_000,
            "is defined in a.py and used in more than 1,000 files.",
        ),
        ([], [], 0, "is neither defined nor used here."),
    ],
)
def test_what_is_known_of_a_name_is_told_in_a_sentence(
    defined: list[str], used: list[str], count: int, sentence: str
) -> None:
    found = NameMatch(
        NameQuestion("run", NameIntent.USES),
        [],
        [],
        count,
        is_cut=count == 1_000,
        defined_in=dict(enumerate(defined)),
        paths=dict(enumerate(used)),
    )
    assert found.sentence == f"run {sentence}"


def test_question_has_at_most_three_names_and_the_asked_one_first() -> None:
    found = find_names("with a_b, c_d() and eF in mind: who calls gH")
    assert [one.name for one in found] == ["gH", "a_b", "c_d"]


@pytest.mark.parametrize(
    "text", ["who calls " * 9_999, "a.b" * 9_999, "which a b c " * 9_999, "a" * 99_999]
)
def test_names_are_looked_for_in_linear_time(text: str) -> None:
    began = time.process_time()
    find_names(text)
    assert time.process_time() - began < 2
