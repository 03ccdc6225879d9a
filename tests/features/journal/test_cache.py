"""What upstreams' caches saved, and what lost ones cost."""

from pathlib import Path
from typing import Any

import pytest

from byok.dialects.model_facts import Price
from byok.features.cost import no_price
from byok.features.journal.cache import (
    CacheSums,
    find_expired,
    sum_cache,
    weigh_cache,
)
from byok.features.journal.usage import SeriesReader, Step
from tests.fakes.journal_entries import NOW, entry, write_journal

PRICE = Price(2.0, 10.0, 0.2, 2.5)
WARM = entry(
    started=NOW,
    input_tokens=31_000,
    cache_read_tokens=20_000,
    cache_written_tokens=10_000,
)
COLD: dict[str, Any] = {"started": NOW + 540, "cache_read_tokens": 0}


def price(upstream: str, model: str) -> Price | None:
    return PRICE if model == "m" else None


@pytest.mark.parametrize(
    ("changes", "loss"),
    [
        ({}, (30_000, 30_000 * 1.8 / 1e6)),
        ({"cache_written_tokens": 40_000}, (30_000, 30_000 * (1.8 + 0.5) / 1e6)),
        ({"cache_read_tokens": 14_000}, (16_000, 16_000 * 1.8 / 1e6)),
        ({"cache_read_tokens": 20_000}, None),  # most of it was there
        ({"cache_read_tokens": None}, None),  # the upstream says nothing
        ({"started": NOW + 200}, None),  # no pause
        ({"started": NOW - 9000}, None),  # the clock was set back
        ({"prompt_change": "tools"}, None),  # another prompt
        ({"model": "other"}, None),  # another cache
        ({"input_tokens": 500}, None),  # too short to be kept
    ],
)
def test_a_turn_after_a_pause_whose_prompt_was_forgotten_says_what_that_cost(
    changes: dict[str, Any], loss: tuple[int, float] | None, tmp_path: Path
) -> None:
    fields = {"input_tokens": 40_000, "cache_written_tokens": 0, **COLD, **changes}
    turn = entry(**fields)
    path = write_journal(tmp_path / "journal.db", [WARM, turn])
    found = find_expired(path, [WARM.conversation], price)
    if loss is None:
        assert found == {}
    else:
        tokens, extra = loss
        expired: Any = 537.5, tokens, pytest.approx(extra)
        assert found == {WARM.conversation: {2: expired}}


def test_a_loss_of_unknown_price_is_one(tmp_path: Path) -> None:
    turns = [WARM, WARM._replace(**COLD), entry(**{**COLD, "conversation": "other"})]
    path = write_journal(tmp_path / "journal.db", turns)
    found = find_expired(path, [WARM.conversation, "other"], no_price)
    assert found == {WARM.conversation: {2: (537.5, 30_000, None)}}


def test_what_caches_saved_and_what_lost_ones_cost_is_added_up(tmp_path: Path) -> None:
    again = {"input_tokens": 31_000, "cache_written_tokens": 30_000}
    turns = [
        WARM,
        *(entry(**{**COLD, **again, "started": NOW + n}) for n in (9e2, 2e3)),
    ]
    # Another model of the same conversation has a cache of its own, and no price.
    turns += [turn._replace(model="other") for turn in turns[:2]]
    turns += [entry(**{**COLD, "conversation": "other"})]
    path = write_journal(tmp_path / "journal.db", turns)
    written = -70_000 * 0.5 / 1e6
    known = {
        "read": 40_000,
        "saved": pytest.approx(20_000 * 1.8 / 1e6 + written),
        "unpriced": 20_000,
        "losses": 3,
        "lost": 90_000,
        "lost_cost": pytest.approx(2 * 30_000 * (1.8 + 0.5) / 1e6),
        "lost_unpriced": 30_000,
        "latest": (5, "c0ffee-1", "one"),
    }
    assert weigh_cache(path, "c0ffee-1", price)._asdict() == known
    assert weigh_cache(path, "nobody's", price) == CacheSums()
    reader = SeriesReader(path)
    # The same over time, whatever it is split by, and where a bucket begins in a pause.
    for step, by in ((Step.HOUR, ""), (Step.HOUR, "client"), (Step.DAY, "model")):
        series = reader.read(NOW, NOW + 4000, step, by)
        assert sum_cache(series.caches, price)._asdict() == known
    [*later] = reader.read(NOW + 600, NOW + 4000, Step.HOUR).caches
    assert sum_cache(later, price).lost == 90_000
    assert sum_cache(later, price).read == 0
