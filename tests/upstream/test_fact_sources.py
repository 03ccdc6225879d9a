"""Sources of facts that need no request: which there are, and who counts."""

from pathlib import Path

from byok.dialects.model_facts import (
    FREE,
    FactSource,
    ModelFacts,
    Price,
    combine_facts,
)
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.model_facts import Profile, Profiles, fact_sources
from byok.upstream.spec import Api, UpstreamSpec

SPEC = UpstreamSpec(
    "box",
    (Api(OpenAIChat(), "https://h/v1"),),
    facts={"kimi-k3": ModelFacts("", images=False), "": ModelFacts("", window=9000)},
)


def test_the_user_counts_more_than_a_probe_and_a_probe_more_than_a_name(
    tmp_path: Path,
) -> None:
    profiles = Profiles(tmp_path / "profiles.json")
    probed = ModelFacts("kimi-k3", window=7000, images=True, sampling=True)
    profiles.write("box@https://h/v1", "kimi-k3", Profile(probed))
    lookups = fact_sources(SPEC, profiles)
    layers = [(source, find("kimi-k3")) for source, find in lookups]
    known = combine_facts("kimi-k3", layers)
    assert (known.facts.window, known.facts.images) == (9000, False)
    assert (known.facts.sampling, known.facts.empty_reasoning) == (True, True)
    assert known.sources["window"] is FactSource.USER
    assert known.sources["sampling"] is FactSource.PROBE
    assert known.sources["replay"] is FactSource.FAMILY


def test_a_model_on_this_machine_is_free_unless_somebody_names_a_price() -> None:
    named = ModelFacts("paid", price=Price(1.0, 2.0))
    listed = (FactSource.SERVER, named)
    for url, model, more, free in (
        ("http://127.0.0.1:1/v1", "m", (), True),
        ("http://localhost:1/v1", "m", (), True),
        ("http://127.0.0.1:1/v1", "paid", (), False),
        ("http://127.0.0.1:1/v1", "m", (listed,), False),
        ("https://h/v1", "m", (), False),
    ):
        spec = UpstreamSpec("box", (Api(OpenAIChat(), url),), facts={"paid": named})
        layers = [(source, find(model)) for source, find in fact_sources(spec, None)]
        known = combine_facts(model, [*layers, *more]).facts
        assert (known.price == FREE) is free, (url, model)
