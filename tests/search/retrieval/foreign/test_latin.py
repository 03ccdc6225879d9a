"""English questions are never taken for another language."""

import pytest

from byok.search.retrieval.foreign.words import (
    NO_GUESS,
    guess,
    languages_of,
    says_nothing,
)


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
    found = guess(text.split())
    assert found.sure
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
    assert not guess(text.split()).sure


def test_plain_english_needs_no_table() -> None:
    assert guess(["where", "is", "the", "session", "cookie", "signed"]) == NO_GUESS
    assert guess(["render_template"]) == NO_GUESS


@pytest.mark.parametrize(
    ("word", "languages"),
    [("größe", ("de",)), ("função", ("pt",)), ("señal", ("es",)), ("имя", ())],
)
def test_letters_tell_possible_languages(word: str, languages: tuple[str, ...]) -> None:
    assert languages_of(word) == languages


def test_function_words_say_nothing() -> None:
    assert says_nothing("wie", "de")
    assert not says_nothing("wie", "fr")
