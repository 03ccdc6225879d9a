"""A question in a user's words is also asked in the words that code has for it."""

from importlib import resources

import pytest

from byok.search.index.parse.tokens import stem, words
from byok.search.retrieval.concepts import read_concepts
from byok.search.retrieval.foreign.words import read_entries
from byok.search.retrieval.query import parse_query

_TABLE = resources.files("byok.search.retrieval") / "concepts.tsv"
_ENTRIES = read_entries(_TABLE.read_text("utf-8"))


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("what throws old entries away", "prune"),
        ("old entries must be thrown away when nobody needs them", "prune"),
        ("try the upload again if the server is busy", "retry"),
        ("Log in with a name and a password", "authenticate"),
        ("turn an order into bytes", "serialize"),
        ("GitHub is asked, what throws old entries away, e.g. in version 1.2", "prune"),
        ("where PostgreSQL entries are thrown away", "prune"),
    ],
)
def test_users_words_find_the_words_of_code(question: str, code: str) -> None:
    terms = parse_query(question).terms
    own = {stem(word) for word in words(question)}
    assert 0 < terms[stem(code)] < 1
    assert stem(code) not in own


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("throwAway", "prune"),
        ("`throw` it away", "prune"),
        ("throw_it away", "prune"),
        ("throw away in cache.py", "prune"),
        ("throw(entry) away", "prune"),
        ("Cache::throw away", "prune"),
        ("throw the file open window again and look what goes away then", "prune"),
        ("log noise that comes in", "authenticate"),
        ("alte Einträge wegwerfen", "prune"),
        ("登录的 cache 在哪里", "memoize"),
    ],
)
def test_exact_and_other_questions_gain_no_words_of_concepts(
    question: str, code: str
) -> None:
    assert stem(code) not in parse_query(question).terms


def test_explained_words_count_less_than_those_that_code_shares() -> None:
    terms = parse_query("throw away invoices").terms
    assert terms["throw"] < terms["invoic"] == 1
    terms = parse_query("runs out of memory").terms
    assert terms["out"] < terms["memori"] == 1


def test_each_phrase_of_the_table_finds_its_line() -> None:
    phrases = [phrase for line in _ENTRIES for phrase in line.split(", ")]
    assert len(phrases) == len(set(phrases))
    lost = [
        phrase
        for line, code in _ENTRIES.items()
        for phrase in line.split(", ")
        if not {*code.split()} <= read_concepts(words(phrase)).code.keys()
    ]
    assert lost == []
