"""Each language has a sample, and its query finds what the sample defines."""

import pytest

from byok.search.index.parse.chunking import definitions
from byok.search.index.parse.queries import QUERIES
from tests.fakes.language_samples import SAMPLES


@pytest.mark.parametrize("language", SAMPLES)
def test_query_finds_what_its_sample_defines(language: str) -> None:
    text, names = SAMPLES[language]
    found = definitions(text.encode(), language)
    assert [one.name for one in found if one.name] == names.split()


def test_query_of_every_language_has_a_sample() -> None:
    assert QUERIES.keys() <= SAMPLES.keys()


def test_query_finds_only_structures_with_a_body() -> None:
    used = b"struct foo *x;\nstruct foo *f(struct bar b) { return 0; }\n"
    for language in ("c", "cpp", "objc"):
        assert [one.name for one in definitions(used, language)] == ["f"]


def test_query_finds_only_variables_of_the_module() -> None:
    text = b"const a = 1\nfunction f() { const b = 2; let c }\nexport let d = 3\n"
    for language in ("javascript", "typescript", "tsx"):
        assert [one.name for one in definitions(text, language)] == ["a", "f", "d"]
