"""Which requests are told to whom, how often, and what of each."""

import asyncio
import json
from typing import Any

import pytest

from byok.core.events import Usage
from byok.core.record import Hop, RequestRecord
from byok.core.redact import Redactor
from byok.core.wire.json_lines import encode_line
from byok.dialects.model_facts import Price
from byok.features.base import FeedEnd, FeedReader, Supplies
from byok.features.journal.entry import make_entry
from byok.features.live import (
    MOST_ENDED,
    MOST_READERS,
    EndedRow,
    LiveRequests,
    OpenRow,
)
from tests.fakes.clock import Clock, run_at_once
from tests.fakes.feature_supplies import make_site
from tests.fakes.patience import PATIENCE


def make_live(every: float = 60) -> LiveRequests:
    return LiveRequests(make_site(lambda: 5000.0), every=every)


def begin(live: LiveRequests, name: str, **fields: Any) -> RequestRecord:
    record = RequestRecord(name, "POST")
    record.tap = live.request_started(record)
    known = {"endpoint": "/chat-stream", "trusted": True}
    for field, value in {**known, **fields}.items():
        setattr(record, field, value)
    return record


def end(live: LiveRequests, record: RequestRecord) -> None:
    record.tap = None
    record.finish(200)
    live.request_finished(record)


def pass_bytes(record: RequestRecord) -> None:
    assert record.tap is not None
    record.tap(Hop.TO_CLIENT, b"four")


def told(live: LiveRequests, reader: FeedReader) -> dict[str, Any]:
    """Take what is new, by request."""
    rows: Any = live.take(reader)["rows"]
    assert len({row["request_id"] for row in rows}) == len(rows)
    return {row["request_id"]: row for row in rows}


def outcomes(rows: dict[str, Any]) -> dict[str, str]:
    return {name: row["outcome"] for name, row in rows.items()}


async def test_a_watcher_is_first_told_of_all_that_is_open_or_ended() -> None:
    live = make_live()
    end(live, begin(live, "old"))
    begin(live, "open")
    with live.open_reader() as reader:
        assert outcomes(told(live, reader)) == {"old": "ok", "open": "open"}
        assert live.take(reader)["rows"] == []


async def test_taps_are_only_attached_while_somebody_looks() -> None:
    live = make_live()
    assert begin(live, "before").tap is None
    with live.open_reader() as reader:
        during = begin(live, "during")
        pass_bytes(during)
        rows = told(live, reader)
        assert (rows["during"]["sent"], rows["before"]["sent"]) == (4, None)
    assert begin(live, "after").tap is None
    pass_bytes(during)
    end(live, during)
    with live.open_reader() as reader:
        assert told(live, reader)["during"]["sent"] == 8


async def test_others_requests_are_never_told() -> None:
    live = make_live()
    hidden: list[dict[str, Any]] = [
        {"trusted": False},
        {"endpoint": "/byok/status"},
        {"endpoint": "/metrics"},
        {"endpoint": "/ui/api/live"},
        {"endpoint": "/health"},
    ]
    with live.open_reader() as reader:
        live.take(reader)
        records = [begin(live, str(at), **of) for at, of in enumerate(hidden)]
        early = begin(live, "early", endpoint="(none)")  # whose it is turns out later
        with live.open_reader() as other:
            assert told(live, other) == {}
        for record in [*records, early]:
            pass_bytes(record)
            end(live, record)
        assert list(told(live, reader)) == ["early"]


async def test_the_last_that_ended_are_kept_and_no_more() -> None:
    live = make_live()
    for number in range(MOST_ENDED + 50):
        end(live, begin(live, str(number)))
    with live.open_reader() as reader:
        kept = told(live, reader)
    assert list(kept) == [str(number + 50) for number in range(MOST_ENDED)]


async def test_a_slow_reader_gets_each_request_once_as_it_is_now() -> None:
    live = make_live(every=0.001)
    with live.open_reader() as reader:
        live.take(reader)
        record = begin(live, "r")
        for _ in range(3):
            pass_bytes(record)
            assert await reader.wait(PATIENCE)  # it is woken, but takes nothing
        record.model = "m"
        pass_bytes(record)
        assert await reader.wait(PATIENCE)
        row = told(live, reader)["r"]
        assert (row["sent"], row["pieces"], row["model"]) == (16, 4, "m")
        pass_bytes(record)
        assert await reader.wait(PATIENCE)
        counted = told(live, reader)["r"]
        assert (counted["sent"], "model" in counted) == (20, False)
        end(live, record)
        assert outcomes(told(live, reader)) == {"r": "ok"}


async def test_who_missed_requests_is_told_everything_anew() -> None:
    live = make_live()
    with live.open_reader() as slow, live.open_reader() as quick:
        assert live.take(slow)["whole"]
        assert live.take(quick)["whole"]
        for number in range(MOST_ENDED + 1):
            end(live, begin(live, str(number)))
            if number == 100:
                live.take(quick)
        again = live.take(slow)
        assert (again["whole"], len(again["rows"])) == (True, MOST_ENDED)
        rest = live.take(quick)
        assert (rest["whole"], len(rest["rows"])) == (False, 100)


def test_without_news_nobody_is_woken() -> None:
    async def watch() -> None:
        live = make_live(every=0.001)
        with live.open_reader() as reader:
            live.take(reader)
            begin(live, "untapped", endpoint="/ui/api/live").note_first_byte()
            assert not await reader.wait(60)
            end(live, begin(live, "r"))
            assert await reader.wait(60)

    run_at_once(watch())


async def test_of_too_many_watchers_the_oldest_ends() -> None:
    live, readers = make_live(), list[FeedReader]()

    async def look() -> None:
        with live.open_reader() as reader:
            readers.append(reader)
            while reader.end is None:
                await reader.wait(60)

    tasks = [asyncio.ensure_future(look()) for _ in range(MOST_READERS + 2)]
    await asyncio.wait_for(asyncio.gather(*tasks[:2]), PATIENCE)
    ends = [reader.end for reader in readers]
    assert ends == [FeedEnd.REPLACED] * 2 + [None] * MOST_READERS
    live.stop()
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    assert {reader.end for reader in readers[2:]} == {FeedEnd.STOPPING}
    with live.open_reader() as reader:  # who comes later
        assert reader.end is FeedEnd.STOPPING


async def test_the_cost_is_told_at_the_end_by_the_price_then_in_force() -> None:
    live = make_live()
    live.configure(Supplies(price_of=lambda upstream, model: Price(1.0, 2.0)))
    asked = begin(live, "r", attempts=1, upstream="u", model="m")
    asked.usage = Usage(1_000_000, 500_000)
    with live.open_reader() as reader:
        assert told(live, reader)["r"]["cost"] is None
        end(live, asked)
        live.configure(Supplies())
        assert told(live, reader)["r"]["cost"] == 2.0


KEY = "sk-proj-" + "a1b2c3d4" * 4
COUNTS = ("sent", "pieces", "received", "reads")


def record_of(**fields: Any) -> RequestRecord:
    known = {"endpoint": "/chat-stream", "trusted": True, "clock": Clock()}
    return RequestRecord("r", "POST", **{**known, **fields})


def told_at_the_end(record: RequestRecord) -> Any:
    record.finish(200)
    entry = make_entry(record, 5000.0, lambda upstream, model: None)
    return EndedRow(lambda: entry, None, 1, record.message).facts(Redactor())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("conversation", "c"),
        ("model", "other"),
        ("attempts", 2),
        ("first_byte", 0.5),
        ("usage", Usage(1, 2)),
        ("repairs", 1),
        ("dropped_calls", 1),
        ("notices", 1),
        ("loop", "warned-failing-3"),
        ("error", "timed_out"),
    ],
)
def test_each_fact_that_changes_is_told(name: str, value: object) -> None:
    record = record_of()
    row = OpenRow(record, None)
    row.refresh(1)
    setattr(record, name, value)
    row.refresh(2)
    told: Any = row.changes(1, 5000.0, Redactor())
    shown = "input_tokens" if name == "usage" else name
    assert told[shown] == (1 if name == "usage" else value)
    assert [told[name] for name in COUNTS] == [None] * 4  # nobody looked at its start


@pytest.mark.parametrize(
    "hostile",
    [
        "x" * 1_000_000,
        "\x1b[2J\u202e\u0000</script>",
        "\ud800 alone",
        "two\nlines\u2028\u0085",
        KEY,
        f"{'x' * 984} {KEY}",
    ],
)
def test_hostile_names_are_short_lines_of_json_without_secrets(hostile: str) -> None:
    names = ("model_asked", "conversation", "upstream", "message")
    record = record_of(**dict.fromkeys(names, hostile))
    for told in (opened(record), told_at_the_end(record)):
        line = encode_line(told)
        assert line.count(b"\n") == 1
        assert len(line) < 10_000
        assert KEY[:12].encode() not in line
        assert json.loads(line)["request_id"] == "r"


def opened(record: RequestRecord) -> Any:
    """Return what is told of an open request."""
    row = OpenRow(record, None)
    row.refresh(1)
    return row.changes(0, 5000.0, Redactor())
