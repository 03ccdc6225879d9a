"""Forms of words find the entry of the word that they are a form of."""

import pytest

from byok.search.retrieval.foreign.words import find_entry, load_table, stemmer


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


def test_unknown_word_has_no_entry() -> None:
    assert _english("xyzzy", "de") is None
