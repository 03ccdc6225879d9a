"""The tables are data that people edit; each line is checked."""

import re
import unicodedata
from importlib import resources
from pathlib import Path
from zipfile import ZipFile

import pytest

from byok.search.retrieval.foreign.words import (
    LANGUAGES,
    load_table,
    normalize,
    read_entries,
    simplified_forms,
    stemmer,
)
from tests.fakes.wheel import build_wheel

_FOLDER = resources.files("byok.search.retrieval.foreign") / "term_tables"
_TABLES = sorted(file.name for file in _FOLDER.iterdir() if file.name.endswith(".tsv"))
_ENGLISH = re.compile(r"[a-z][a-z0-9]{1,19}|[1-5][0-9]{2}")


def _lines(name: str) -> list[str]:
    text = (_FOLDER / name).read_bytes().decode()
    assert text.endswith("\n")
    assert "\r" not in text
    return [line for line in text[:-1].split("\n") if not line.startswith("#")]


def test_tables_are_of_known_languages() -> None:
    assert {name.removesuffix(".tsv") for name in _TABLES} <= set(LANGUAGES)


@pytest.mark.parametrize("name", _TABLES)
def test_table_is_sorted_and_without_repetition(name: str) -> None:
    terms = [line.split("\t")[0] for line in _lines(name)]
    assert terms == sorted(set(terms))


@pytest.mark.parametrize("name", _TABLES)
def test_table_has_normal_terms_and_sane_english(name: str) -> None:
    wrong = []
    for line in _lines(name):
        term, tab, english = line.partition("\t")
        words = english.split(" ") if english else []
        if (
            not tab
            or term != unicodedata.normalize("NFKC", term).lower().strip()
            or not term
            or len(words) > 4
            or len(set(words)) < len(words)
            or not all(map(_ENGLISH.fullmatch, words))
        ):
            wrong.append(line)
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "least"),
    [(f"{name}.tsv", 2500 if name == "zh" else 600) for name in LANGUAGES],
)
def test_table_has_enough_terms(name: str, least: int) -> None:
    assert sum(1 for line in _lines(name) if not line.endswith("\t")) >= least


def test_tables_are_in_the_wheel(tmp_path: Path) -> None:
    with ZipFile(build_wheel(tmp_path)) as wheel:
        packed = {Path(name).name for name in wheel.namelist() if "term_tables" in name}
    assert packed == {*_TABLES, "simplified.txt"}


def test_entries_skip_comments_and_lines_without_a_tab() -> None:
    text = "# a\tb\nroute\trouter\nbroken\n如何\t\n"
    assert read_entries(text) == {"route": "router", "如何": ""}


def test_table_of_an_unknown_language_is_empty() -> None:
    assert load_table("xx").entries == {}


def test_traditional_characters_become_simplified() -> None:
    assert "請求註冊資料庫連線".translate(simplified_forms()) == "请求注册资料库连线"
    assert "请求".translate(simplified_forms()) == "请求"


def test_stems_join_forms_of_a_word() -> None:
    assert stemmer("ru")("маршруты") == stemmer("ru")("маршрутов")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＨＴＴＰ", "HTTP"),
        ("text", "text"),
        ("\ud800 x", "\ud800 x"),
        ("ﷺ", "صلى "),
        ("abcdef", "abcd"),
    ],
)
def test_text_is_normalised_and_cut(text: str, expected: str) -> None:
    assert normalize(text, 4) == expected
