"""Text to terms."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from byok.search.index.parse import tokens


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


def test_token_of_excessive_length_is_dropped() -> None:
    assert list(tokens.terms("x" * 65)) == []
    assert list(tokens.terms("x" * 64)) == ["x" * 64]


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
