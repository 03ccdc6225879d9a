"""The tables are data that people edit; each line is checked."""

import re
import unicodedata
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pytest

from byok.search.index.parse.tokens import path_terms, stem, words
from byok.search.retrieval.foreign.words import (
    read_entries,
    read_foreign,
)

_FOLDER = resources.files("byok.search.retrieval.foreign") / "term_tables"
_TABLES = sorted(file.name for file in _FOLDER.iterdir() if file.name.endswith(".tsv"))
_ENGLISH = re.compile(r"[a-z][a-z0-9]{1,19}|[1-5][0-9]{2}")


def _lines(name: str) -> list[str]:
    text = (_FOLDER / name).read_bytes().decode()
    assert text.endswith("\n")
    assert "\r" not in text
    return [line for line in text[:-1].split("\n") if not line.startswith("#")]


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


# The tables translate questions that developers ask


_LANGUAGES = ("ja", "ko", "ru", "es", "pt", "de", "fr")
_SPACED = ("ru", "es", "pt", "de", "fr")
_QUESTIONS = Path(__file__).parent / "data" / "questions.tsv"


def _rows(language: str) -> dict[str, str]:
    return read_entries((_FOLDER / f"{language}.tsv").read_text("utf-8"))


class _Question(NamedTuple):
    language: str
    repository: str
    text: str
    paths: str
    english: str


def _questions() -> list[_Question]:
    lines = _QUESTIONS.read_text("utf-8").splitlines()
    return [_Question(*line.split("\t")) for line in lines]


@pytest.mark.parametrize("question", _questions(), ids=lambda given: given.text)
def test_two_words_of_a_question_are_translated(question: _Question) -> None:
    foreign = read_foreign(words(question.text))
    found = {stem(word) for word in foreign.english}
    wanted = {stem(word) for word in words(question.english.lower())}
    for path in question.paths.split():
        wanted.update(path_terms(path))
    assert len(found & wanted) >= 2


@pytest.mark.parametrize("language", _SPACED)
def test_terms_are_words_as_questions_are_read(language: str) -> None:
    terms = _rows(language)
    assert [term for term in terms if " ".join(words(term)) != term] == []


# German has such terms, for compounds: "Serverantwort" is an answer of a server.


@pytest.mark.parametrize(
    ("word", "english"),
    [
        ("Logdateien", {"log", "file"}),
        ("Serverantwort", {"server", "response"}),
        ("Knotentyp", {"node", "type"}),
        ("Verbindungsfehlermeldung", {"connection", "error", "message"}),
    ],
)
def test_german_compounds_are_their_parts(word: str, english: set[str]) -> None:
    assert english <= read_foreign(["wie", "wird", word]).english.keys()
