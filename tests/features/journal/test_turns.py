"""Why a conversation was dear: the turn, and what the upstream's cache did."""

from pathlib import Path
from typing import Any

import pytest

from byok.dialects.model_facts import Price
from byok.features.cost import no_price
from byok.features.journal.turns import count_expired, find_expired, weigh_cost
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
    ("changes", "extra"),
    [
        ({}, 30_000 * 1.8 / 1e6),
        ({"cache_written_tokens": 40_000}, 30_000 * (1.8 + 0.5) / 1e6),
        ({"cache_read_tokens": 14_000}, 16_000 * 1.8 / 1e6),
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
    changes: dict[str, Any], extra: float | None, tmp_path: Path
) -> None:
    fields = {"input_tokens": 40_000, "cache_written_tokens": 0, **COLD, **changes}
    turn = entry(**fields)
    path = write_journal(tmp_path / "journal.db", [WARM, turn])
    lost: Any = {2: (537.5, pytest.approx(extra))} if extra else {}
    assert find_expired(path, WARM.conversation, price) == lost


def test_a_loss_of_unknown_price_is_one(tmp_path: Path) -> None:
    turns = [WARM, WARM._replace(**COLD)]
    path = write_journal(tmp_path / "journal.db", turns)
    assert find_expired(path, WARM.conversation, no_price) == {2: (537.5, None)}


def test_what_a_conversation_lost_is_added_up(tmp_path: Path) -> None:
    later = {"input_tokens": 31_000, "cache_written_tokens": 30_000}
    turns = [
        WARM,
        *(entry(**{**COLD, **later, "started": NOW + n}) for n in (9e2, 2e3)),
    ]
    turns.append(entry(**{**COLD, "conversation": "other"}))
    path = write_journal(tmp_path / "journal.db", turns)
    [(name, lost)] = count_expired(path, ["c0ffee-1", "other"], price).items()
    assert (name, lost.times) == ("c0ffee-1", 2)
    assert lost.extra_cost == pytest.approx(2 * 30_000 * (1.8 + 0.5) / 1e6)
    assert count_expired(path, ["c0ffee-1"], no_price) == {"c0ffee-1": (2, None)}


def test_the_dearest_turn_is_found_and_what_all_cost_without_the_cache(
    tmp_path: Path,
) -> None:
    cached = {"cache_read_tokens": 1_000_000, "cache_written_tokens": 0}
    turns = [
        entry(started=NOW + 1, cost=0.1, **cached),
        entry(started=NOW, cost=None, **cached),
        entry(started=NOW + 3, cost=0.9, cache_read_tokens=None),
        entry(started=NOW + 2, cost=0.5, cache_read_tokens=0),
        entry(started=NOW + 4, conversation="other", cost=7),
    ]
    path = write_journal(tmp_path / "journal.db", turns)
    found = weigh_cost(path, "c0ffee-1", price)
    assert found.dearest == (3, 0.9, 4)
    assert found.without_cache == pytest.approx(1.5 + 1.8)
    assert weigh_cost(path, "c0ffee-1", no_price).without_cache is None
    assert weigh_cost(path, "nobody's", price) == (None, 0)
