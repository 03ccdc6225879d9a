"""What counts as a request that is one identifier."""

import time

import pytest

from byok.search.retrieval.query import definition_marks, identifier_of


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


@pytest.mark.parametrize("text", ["a." * 149 + "!", "a<" * 149, "(" * 299, "-a" * 149])
def test_identifier_is_looked_for_in_linear_time(text: str) -> None:
    began = time.process_time()
    for _ in range(20):
        identifier_of(text)
    assert time.process_time() - began < 10


def test_marks_of_types_count_most_and_another_case_half() -> None:
    assert definition_marks("Foo") == {
        ":t:Foo": 1.0, ":T:foo": 0.5,
        ":f:Foo": 0.6, ":F:foo": 0.3,
        ":o:Foo": 0.6, ":O:foo": 0.3,
    }  # fmt: skip
