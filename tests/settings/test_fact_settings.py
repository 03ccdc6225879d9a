"""What users say about models."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from byok.core.errors import ConfigError
from byok.dialects.model_facts import FIELDS, ModelFacts, Price, Replay
from byok.settings import Settings, load_settings
from byok.settings.sections import FactSettings

PASSING = {"id", "loaded_window", "token_memory", "price"}


def test_facts_that_are_not_set_stay_unknown() -> None:
    assert FactSettings().as_facts("m") == ModelFacts("m")


def test_facts_that_are_set_have_their_types() -> None:
    given = FactSettings(
        window=8000, images=False, efforts=("low",), replay="never", price_input=2
    )
    assert given.as_facts("m") == ModelFacts(
        "m",
        window=8000,
        images=False,
        efforts=("low",),
        replay=Replay.NEVER,
        price=Price(2.0),
    )


def test_every_fact_can_be_set() -> None:
    prices = {f"price_{name}" for name in Price.__slots__}
    settable = set(FactSettings.model_fields)
    assert prices < settable
    assert settable - prices == set(FIELDS) - PASSING


def test_a_price_of_the_cache_can_be_set_alone() -> None:
    given = FactSettings(price_cache_read=0.5)
    assert given.as_facts("m").price == Price(cache_read=0.5)


@pytest.mark.parametrize(
    "given",
    [{"window": -1}, {"replay": "often"}, {"efforts": ["odd"]}, {"dialect": "odd"}],
    ids=str,
)
def test_a_fact_that_cannot_be_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FactSettings.model_validate(given)


def test_facts_are_a_section_of_their_upstream(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[upstreams.openai.facts."gpt-5.6-terra"]\nwindow = 400000\n')
    settings: Settings = load_settings(file)
    assert settings.upstreams["openai"].facts["gpt-5.6-terra"].window == 400_000
    file.write_text("[upstreams.openai.facts.m]\nwindows = 400000\n")
    with pytest.raises(ConfigError, match="Did you mean window"):
        load_settings(file)
