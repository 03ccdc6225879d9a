"""Without an index, a few words of a question are searched, the telling ones first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.retrieval.ripgrep import search_words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("where is the session cookie signed", ["session", "cookie", "signed"]),
        ("fix parser", ["parser", "fix"]),
        ("Parser parser PARSER", ["Parser"]),
        ("what is it for and why", ["what", "for", "and", "why"]),
        ("a b c", ["a b c"]),
        ("-x", ["-x"]),
        ("登录 霓虹", ["login", "signin", "auth", "登录", "霓虹"]),
        ("登", ["登"]),
        ("where is the function 搜索", ["function", "search", "搜索"]),
        ("霓虹甲乙丙", ["霓虹", "虹甲", "甲乙", "乙丙"]),
        ("计算总和", ["compute", "sum", "calculate", "total", "计算总和"]),
        ("xyz größe", ["xyz", "größe", "size"]),
        ("x" * 99, ["x" * 64]),
        ("1" * 99, ["1" * 64]),
        ("a\x00b", ["a"]),
        ("\n\r 1\n2", ["1"]),
        ("", []),
        (" \n\x00\r ", []),
        (" ".join(f"word{chr(97 + n)}" for n in range(9)),
         [f"word{chr(97 + n)}" for n in range(8)]),
    ],
)  # fmt: skip
def test_search_words_are_few(text: str, tokens: list[str]) -> None:
    assert search_words(text) == tokens


@pytest.mark.case("B48", "B51")
@given(st.text())
def test_search_word_is_short_without_nul_and_line_end(text: str) -> None:
    tokens = search_words(text)
    assert len(tokens) <= 8
    for token in tokens:
        assert 0 < len(token) <= 64
        assert not {"\x00", "\n", "\r"} & set(token)


def test_search_words_of_a_foreign_question_are_english_and_its_own() -> None:
    found = search_words("请求上下文和响应渲染的生命周期 RouterGroup 如何注册中间件")
    assert found[0] == "RouterGroup"
    assert {"request", "context"} <= set(found)
    assert sum(not word.isascii() for word in found) == 2
