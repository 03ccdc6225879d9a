"""The tables translate questions that developers ask.

`data/questions.tsv` has one question a line: language, repository, question, paths of
the right files, and the question in English. The questions were written before the
tables. The files need not be here; tools measure rankings with the same questions.
"""

from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pytest

from byok.search.index.parse.tokens import path_terms, stem, words
from byok.search.retrieval.foreign.words import read_entries, read_foreign

_LANGUAGES = ("ja", "ko", "ru", "es", "pt", "de", "fr")
_SPACED = ("ru", "es", "pt", "de", "fr")
_TABLES = resources.files("byok.search.retrieval.foreign") / "term_tables"
_QUESTIONS = Path(__file__).parent / "data" / "questions.tsv"


def _rows(language: str) -> dict[str, str]:
    return read_entries((_TABLES / f"{language}.tsv").read_text("utf-8"))


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


@pytest.mark.parametrize("language", _LANGUAGES)
def test_every_language_is_asked_in(language: str) -> None:
    asked = [given for given in _questions() if given.language == language]
    assert len(asked) >= 10
    assert len({given.repository for given in asked}) >= 3


@pytest.mark.parametrize("language", _SPACED)
def test_terms_are_words_as_questions_are_read(language: str) -> None:
    terms = _rows(language)
    assert [term for term in terms if " ".join(words(term)) != term] == []


# German has such terms, for compounds: "Serverantwort" is an answer of a server.
@pytest.mark.parametrize("language", sorted({*_LANGUAGES} - {"de"}))
def test_no_term_is_its_own_translation(language: str) -> None:
    terms = _rows(language)
    assert [term for term in terms if term in terms[term].split()] == []


@pytest.mark.parametrize("language", ("ja", "ko"))
def test_terms_without_spaces_are_one_run(language: str) -> None:
    terms = _rows(language)
    assert [term for term in terms if words(term) != [term]] == []


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
