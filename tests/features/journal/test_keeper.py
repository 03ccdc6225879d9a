"""The journal as an observer: which requests are kept, and at which prices."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from byok.core.events import Usage
from byok.core.platform.paths import find_paths
from byok.core.record import RequestRecord
from byok.dialects.model_facts import Price
from byok.features.cost import PriceOf, no_price
from byok.features.journal.writer import JournalKeeper
from byok.settings import Settings
from tests.fakes.clock import Clock
from tests.fakes.feature_supplies import GivenSupplies, make_site
from tests.fakes.journal_entries import NOW, QUICK, rows_of


@pytest.fixture
def path() -> Path:
    return find_paths().journal


@pytest.fixture
def journal() -> Iterator[JournalKeeper]:
    with closing(JournalKeeper(make_site(lambda: NOW), QUICK)) as journal:
        use(journal, 90, lambda upstream, model: Price(1.0, 1.0))
        yield journal


def use(
    journal: JournalKeeper, keep_days: int, price_of: PriceOf, **section: Any
) -> None:
    section["keep_days"] = keep_days
    settings = Settings.model_validate({"journal": section})
    journal.configure(GivenSupplies(settings, price_of))


def finish(journal: JournalKeeper, endpoint: str = "/chat", **fields: Any) -> None:
    record = RequestRecord(endpoint, endpoint=endpoint, trusted=True, clock=Clock())
    for name, value in fields.items():
        setattr(record, name, value)
    journal.request_started(record)
    record.finish(200)
    journal.request_finished(record)


def test_requests_of_clients_are_kept(path: Path, journal: JournalKeeper) -> None:
    finish(journal)
    finish(journal, "/health")
    finish(journal, "/byok/daemon")
    finish(journal, "/find-missing", trusted=False)
    finish(journal, "/find-missing")
    journal.close()
    assert rows_of(path, "endpoint") == [("/chat",), ("/find-missing",)]
    assert journal.lost == 0


@pytest.mark.parametrize(("keeps", "kept"), [(True, "shop"), (False, "")])
def test_a_folder_is_kept_by_its_name_if_at_all(
    path: Path, journal: JournalKeeper, keeps: bool, kept: str
) -> None:
    use(journal, 90, no_price, folder_names=keeps)
    finish(journal, folders=("/home/mia/shop", "/home/mia/other"))
    journal.close()
    assert rows_of(path, "folder") == [(kept,)]


def test_prices_are_those_of_the_newest_settings(
    path: Path, journal: JournalKeeper
) -> None:
    used: dict[str, Any] = {
        "upstream": "one",
        "model": "m",
        "attempts": 1,
        "usage": Usage(2_000_000),
    }
    finish(journal, **used)
    use(journal, 90, lambda upstream, model: Price(2.0))
    finish(journal, **used)
    use(journal, 90, lambda upstream, model: None)
    finish(journal, **used)
    journal.close()
    assert rows_of(path, "cost") == [(2.0,), (4.0,), (None,)]


def test_a_journal_keeps_nothing_before_it_is_configured(path: Path) -> None:
    with closing(JournalKeeper(make_site(), QUICK)) as journal:
        finish(journal)
    assert not path.exists()
