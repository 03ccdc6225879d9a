"""Words of other languages get English words, of less weight than words as they are."""

import re
import unicodedata
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.parse.tokens import path_terms, stem, words
from byok.search.index.types import Kind
from byok.search.retrieval.foreign.words import (
    ForeignWords,
    Segment,
    find_entry,
    guess_language,
    languages_of,
    load_table,
    normalize,
    read_entries,
    read_foreign,
    segment,
    stemmer,
)
from byok.search.retrieval.query import parse_query


def _terms(text: str) -> dict[str, float]:
    return dict(parse_query(text).terms)


def test_chinese_question_is_asked_in_english_too() -> None:
    terms = _terms("路由是如何注册的")
    assert terms["路由"] == terms["注册"] == 1.0
    assert 0 < terms["router"] < terms["rout"] < 1
    assert 0 < terms["regist"] < 1


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
    assert parse_query(text).kinds.keys() == kinds


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


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("Vergleich geheimer Zeichenketten in konstanter Zeit", "secret"),
        ("vergleich geheimer texte", "secret"),
        ("begrenzung gleichzeitiger verbindungen", "concurrent"),
        ("limite conexoes simultaneas", "connection"),
        ("renovar sesion usuario", "session"),
        ("两步验证的一次性密码", "totp"),
        ("防止伪造请求", "csrf"),
    ],
)
def test_questions_of_few_words_are_asked_in_english(
    question: str, english: str
) -> None:
    assert 0 < _terms(question)[stem(english)] < 1


@pytest.mark.shared
@pytest.mark.parametrize("name", ["dev", "nl_dev"])
def test_english_questions_are_as_before(name: str, shared: Path) -> None:
    file = shared / "bench" / "retrieval" / f"{name}.jsonl"
    for line in file.read_bytes().splitlines():
        question = orjson.loads(line)["query"]
        assert normalize(question, 10_000) == question[:10_000]
        assert read_foreign(words(question)) == ForeignWords(
            {}, frozenset(), frozenset(), {}
        )


# Forms of words find the entry of the word that they are a form of


def _english(text: str, language: str) -> str | None:
    stemmed = " ".join(map(stemmer(language), text.split()))
    return find_entry(text, stemmed, language, load_table(language))


@pytest.mark.parametrize(
    ("language", "form", "entry"),
    [
        ("es", "conexiones", "conexión"),
        ("es", "registradas", "registrar"),
        ("es", "bases de datos", "base de datos"),
        ("pt", "conexões", "conexão"),
        ("pt", "erros", "erro"),
        ("pt", "variáveis", "variável"),
        ("fr", "données", "donnée"),
        ("fr", "requêtes", "requête"),
        ("de", "löscht", "löschen"),
        ("de", "registrierten", "registrieren"),
        ("de", "gefiltert", "filtern"),
        ("de", "hinzugefügten", "hinzufügen"),
        ("de", "verbindungen", "verbindung"),
        ("ru", "маршрутов", "маршрут"),
        ("ru", "заголовки", "заголовок"),
        ("ru", "отправленных", "отправить"),
        ("ru", "запущен", "запустить"),
        ("pt", "variáveis de ambiente", "variável de ambiente"),
        ("de", "handlern", "handler"),
        ("ru", "записи", "запись"),
        ("ru", "каналы", "канал"),
        ("ru", "регистрируются", "регистрировать"),
    ],
)
def test_form_has_the_meaning_of_its_word(language: str, form: str, entry: str) -> None:
    english = load_table(language).entries[entry]
    assert english
    assert _english(form, language) == english


@pytest.mark.parametrize(
    ("language", "form", "first"),
    [
        ("es", "procesos", "process"),
        ("es", "procesadores", "processor"),
        ("fr", "utilisateurs", "user"),
        ("fr", "utilisée", "usage"),
        ("de", "größen", "size"),
        ("de", "große", "large"),
    ],
)
def test_of_words_with_one_stem_the_most_alike_counts(
    language: str, form: str, first: str
) -> None:
    assert (_english(form, language) or "").split()[0] == first


@pytest.mark.parametrize(
    ("language", "text", "entry"),
    [
        ("es", "sesion", "sesión"),
        ("pt", "conexao", "conexão"),
        ("pt", "conexoes", "conexão"),
        ("fr", "donnees", "données"),
        ("fr", "requete", "requête"),
        ("de", "loeschen", "löschen"),
        ("de", "schluessel", "schlüssel"),
        ("ru", "приём", "прием"),
    ],
)
def test_words_are_known_without_their_accents(
    language: str, text: str, entry: str
) -> None:
    assert _english(text, language) == load_table(language).entries[entry]


# English questions are never taken for another language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("wie werden routen registriert", "de"),
        ("dónde se validan los formularios", "es"),
        ("como são registradas as rotas", "pt"),
        ("comment les routes sont enregistrées", "fr"),
        ("où est défini le contexte de la requête", "fr"),
    ],
)
def test_function_words_tell_the_language(text: str, language: str) -> None:
    found = guess_language(text.split())
    assert found.is_certain
    assert found.languages[0] == language


@pytest.mark.parametrize(
    "text",
    [
        "where is the session cookie signed",
        "how does the de facto standard parser die",
        "sin and cos of the des cipher",
        "render_template",
        "la liga",
        "",
        "fix the naïve comparison of items",
        "add the en and de locales to the list",
    ],
)
def test_english_is_not_taken_for_another_language(text: str) -> None:
    assert not guess_language(text.split()).is_certain


@pytest.mark.parametrize(
    ("word", "languages"),
    [("größe", ("de",)), ("função", ("pt",)), ("señal", ("es",)), ("имя", ())],
)
def test_letters_tell_possible_languages(word: str, languages: tuple[str, ...]) -> None:
    assert languages_of(word) == languages


# Terms are found in text without spaces


def _found_terms(text: str, *terms: str, shortest: int = 1) -> list[str]:
    entries = dict.fromkeys(terms, "x")
    found = segment(text, entries, max(map(len, terms)), shortest)
    return [text[part.start : part.end] for part in found]


def test_most_characters_are_covered_even_if_the_first_term_is_shorter() -> None:
    assert _found_terms("abcde", "abc", "ab", "cde") == ["ab", "cde"]


def test_single_character_counts_between_terms_only() -> None:
    assert _found_terms("cabac", "a", "b", "c") == ["c", "a", "b", "a", "c"]
    assert _found_terms("a?ab", "a", "b") == ["b"]


def test_term_knows_the_meaning_of_its_parts() -> None:
    entries = {"ab": "request", "cd": "context", "abcd": "request context"}
    assert list(segment("abcd", entries, 4)) == [
        Segment(0, 4, "request context", ("request", "context"))
    ]


@given(st.text("abc", max_size=30), st.sets(st.text("abc", min_size=1, max_size=4)))
def test_segments_are_terms_in_order(text: str, terms: set[str]) -> None:
    place = 0
    for part in segment(text, dict.fromkeys(terms, ""), 4):
        assert place <= part.start < part.end <= len(text)
        assert text[part.start : part.end] in terms
        place = part.end


# The tables are data that people edit; each line is checked


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
