"""Words of other languages get English words, of less weight than words as they are."""

import subprocess
import sys
import unicodedata
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.parse.tokens import words
from byok.search.index.types import Kind
from byok.search.retrieval.foreign.words import Foreign, normalize, read_foreign
from byok.search.retrieval.query import parse_query


def _terms(text: str) -> dict[str, float]:
    return dict(parse_query(text).terms)


def test_chinese_question_is_asked_in_english_too() -> None:
    terms = _terms("路由是如何注册的")
    assert terms["路由"] == terms["注册"] == 1.0
    assert 0 < terms["router"] < terms["rout"] < 1
    assert 0 < terms["regist"] < 1


def test_words_that_say_nothing_are_no_terms() -> None:
    assert not {"如何", "由是", "是如", "册的"} & _terms("路由是如何注册的").keys()


def test_question_of_words_that_say_nothing_keeps_them() -> None:
    assert _terms("你好") == {"你好": 1.0}


@pytest.mark.parametrize(
    ("text", "stop", "task"),
    [
        ("你好，谢谢", True, True),
        ("解释这个文件", False, True),
        ("Explain this file", False, True),
        ("解释路由", False, False),
        ("what is it", True, True),
        ("wie wird das", True, True),
        ("", True, True),
    ],
)
def test_query_tells_whether_it_says_anything(
    text: str, stop: bool, task: bool
) -> None:
    query = parse_query(text)
    assert (query.only_stop_words, query.only_task_words) == (stop, task)


def test_identifier_in_a_chinese_question_counts_most() -> None:
    terms = _terms("Flask 如何处理 Request 和请求上下文")
    assert terms["request"] == terms["flask"] == 1.0
    assert terms["context"] < 1


def test_words_of_a_compound_are_no_alternatives() -> None:
    terms = _terms("请求上下文")
    assert terms["request"] == terms["context"]


def test_traditional_chinese_is_understood() -> None:
    terms = _terms("請求註冊")
    assert terms["請求"] == 1.0
    assert {"request", "regist"} <= terms.keys()


def test_full_width_letters_are_letters() -> None:
    assert _terms("ＨＴＴＰ　Ｓｅｒｖｅｒ") == {"http": 1.0, "server": 1.0}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("配置文档", {Kind.DOC}),
        ("路由示例", {Kind.EXAMPLE}),
        ("路由", set()),
    ],
)
def test_kinds_of_files_are_named_in_any_language(text: str, kinds: set[Kind]) -> None:
    assert parse_query(text).names == kinds


def test_long_question_keeps_english_words() -> None:
    assert {"rout", "middlewar"} <= _terms(
        "路由中间件" + "甲乙丙丁戊己庚" * 1400
    ).keys()


@pytest.mark.parametrize(
    "text",
    ["\ud800路由\udfff", "😀路由", "路由ROUTE路由", "路由" * 2**19, "ﷺ" * 20_000, "路"],
    ids=["surrogates", "emoji", "mixed", "1 MiB", "grows", "one letter"],
)
def test_strange_questions_are_parsed(text: str) -> None:
    assert len(_terms(text)) <= 64


def test_long_words_are_no_german_compounds() -> None:
    # Each length of a part was tried at each place, which took seconds.
    assert _terms("wie wird die datenbankverbindung")["connect"] > 0
    endless = "verbindung" * 40
    assert not read_foreign(["wie", "wird", "die", endless]).english


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(200, 300))
def test_text_is_normalized_as_a_whole(text: str, spaces: int) -> None:
    long = f"{text}{' ' * spaces}{text}"
    assert normalize(long, 10_000) == unicodedata.normalize("NFKC", long)


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    assert all(0 < weight <= 1 for weight in _terms(text).values())


def test_english_question_loads_no_table() -> None:
    code = (
        "from byok.search.retrieval.query import parse_query\n"
        "from byok.search.retrieval.foreign.words import load_table\n"
        "parse_query('where is the session cookie signed in app.py?')\n"
        "assert load_table.cache_info().misses == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["dev", "nl_dev"])
def test_english_questions_are_as_before(name: str, shared: Path) -> None:
    file = shared / "bench" / "retrieval" / f"{name}.jsonl"
    for line in file.read_bytes().splitlines():
        question = orjson.loads(line)["query"]
        assert normalize(question, 10_000) == question[:10_000]
        assert read_foreign(words(question)) == Foreign(
            {}, frozenset(), frozenset(), {}
        )
