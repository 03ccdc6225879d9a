"""Upstreams that could be used."""

import pytest

from byok.config import UpstreamSettings
from byok.dialects.model_facts import ModelFacts
from byok.setup.candidate import Candidate, FoundBy, best_candidate

ONE = ModelFacts("m")


def candidate(
    name: str = "a",
    models: tuple[ModelFacts, ...] = (),
    key_source: str = "",
    trouble: str = "",
    is_offered: bool = True,
) -> Candidate:
    section = UpstreamSettings(type="ollama")
    found = (FoundBy.SERVER, models, key_source, trouble, is_offered)
    return Candidate(name, section, "http://127.0.0.1:1", *found)


@pytest.mark.parametrize(
    ("one", "detail"),
    [
        (candidate(), ""),
        (candidate(models=(ONE,)), "1 model"),
        (candidate(models=(ONE, ONE)), "2 models"),
        (candidate(key_source="OPENAI_API_KEY"), "key in OPENAI_API_KEY"),
        (candidate(models=(ONE,), key_source="vault"), "key in vault, 1 model"),
        (candidate(models=(ONE,), trouble="it wants a key"), "it wants a key"),
    ],
)
def test_a_candidate_says_what_counts(one: Candidate, detail: str) -> None:
    assert one.detail == detail


def test_the_best_is_the_first_without_trouble_that_is_offered() -> None:
    broken, shy = candidate("b", trouble="no"), candidate("c", is_offered=False)
    assert best_candidate([broken, shy, candidate("d"), candidate("e")]) == candidate(
        "d"
    )
    assert best_candidate([broken, shy]) is None
