"""Facts of several sources become one record, and each fact has its source."""

from byok.dialects.model_facts import (
    FactSource,
    ModelFacts,
    Price,
    Replay,
    combine_facts,
)


def test_the_first_source_that_knows_a_fact_counts() -> None:
    combined = combine_facts(
        "m",
        [
            (FactSource.TABLE, ModelFacts("x", 8192, images=True, price=Price(1.0))),
            (FactSource.SERVER, ModelFacts("m", 4096, replay=Replay.NEVER)),
            (FactSource.USER, ModelFacts("m", images=False)),
        ],
    )
    assert combined.facts == ModelFacts(
        "m", 4096, images=False, replay=Replay.NEVER, price=Price(1.0)
    )
    assert combined.sources == {
        "window": FactSource.SERVER,
        "images": FactSource.USER,
        "replay": FactSource.SERVER,
        "price": FactSource.TABLE,
    }


def test_what_is_unknown_has_no_source() -> None:
    assert combine_facts("m", []).facts == ModelFacts("m")
    assert ModelFacts("m", 0, tools=None, efforts=()).known_fields() == {}
    assert ModelFacts("m", tools=False).known_fields() == {"tools": False}
