"""What is told of one request."""

import json
from typing import Any

import pytest

from byok.core.events import Usage
from byok.core.record import Hop, RequestRecord
from byok.core.redact import Redactor
from byok.core.wire.json_lines import encode_line
from byok.features.journal.entry import make_entry
from byok.features.live.requests import Counter, EndedRow, OpenRow, Pulse
from tests.fakes.clock import Clock

KEY = "sk-proj-" + "a1b2c3d4" * 4
COUNTS = ("sent", "pieces", "received", "reads")
USAGE = Usage(100, 7, 60, 20, cache_told=True)


def record_of(**fields: Any) -> RequestRecord:
    """A request of a client."""
    known = {"endpoint": "/chat-stream", "trusted": True, "clock": Clock()}
    return RequestRecord("r", "POST", **{**known, **fields})


def told_at_the_end(record: RequestRecord) -> Any:
    """Return what is told of a request that has ended."""
    record.finish(200)
    entry = make_entry(record, 5000.0, lambda upstream, model: None)
    return EndedRow(lambda: entry, None, 1).tell(Redactor())


def quiet() -> Pulse:
    return Pulse(lambda: None, 60)


def test_a_counter_counts_what_reaches_the_client_and_comes_from_upstreams() -> None:
    counter = Counter(record_of(), quiet())
    for hop in Hop:
        counter(hop, b"four")
    counter(Hop.TO_CLIENT, b"")
    assert (counter.sent, counter.pieces) == (4, 2)
    assert (counter.received, counter.reads) == (4, 1)


@pytest.mark.parametrize(
    ("endpoint", "trusted", "due"),
    [
        ("/chat-stream", True, True),
        ("/chat-stream", False, False),
        ("/ui/api/live", True, False),
        ("/byok/status", True, False),
    ],
)
async def test_only_requests_of_clients_are_news(
    endpoint: str, *, trusted: bool, due: bool
) -> None:
    pulse = quiet()
    pulse.on = True
    Counter(record_of(endpoint=endpoint, trusted=trusted), pulse)(Hop.TO_CLIENT, b"x")
    assert pulse.due is due
    pulse.stop()


def test_an_open_row_tells_facts_then_counts_then_nothing() -> None:
    record = record_of(model="m", upstream="u")
    counter = Counter(record, quiet())
    row = OpenRow(record, counter)
    row.refresh(1)
    first: Any = row.tell(0, 5000.0, Redactor())
    assert first["model"] == "m"
    assert (first["outcome"], first["sent"], first["cost"]) == ("open", 0, None)
    assert row.tell(1, 5000.0, Redactor()) is None
    counter(Hop.TO_CLIENT, b"four")
    row.refresh(2)
    assert row.tell(1, 5000.0, Redactor()) == {
        "request_id": "r",
        "seconds": 0.0,
        "sent": 4,
        "pieces": 1,
        "received": 0,
        "reads": 0,
    }
    assert row.tell(2, 5000.0, Redactor()) is None


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
    told: Any = row.tell(1, 5000.0, Redactor())
    shown = "input_tokens" if name == "usage" else name
    assert told[shown] == (1 if name == "usage" else value)
    assert [told[name] for name in COUNTS] == [None] * 4  # nobody looked at its start


def test_an_ended_row_has_tokens_and_how_it_ended() -> None:
    record = record_of(attempts=1, loop="ended-failing-6", usage=USAGE)
    told = told_at_the_end(record)
    assert (told["input_tokens"], told["output_tokens"]) == (100, 7)
    assert (told["cache_read_tokens"], told["cache_written_tokens"]) == (60, 20)
    assert (told["outcome"], told["status"]) == ("ok", 200)
    assert told["loop"] == "ended-failing-6"
    assert told["cost"] is None  # no price is known, which is not 0


@pytest.mark.parametrize(
    "hostile",
    [
        "x" * 1_000_000,
        "\x1b[2J\u202e\u0000</script>",
        "\ud800 alone",
        "two\nlines\u2028\u0085",
        KEY,
    ],
)
def test_hostile_names_are_short_lines_of_json_without_secrets(hostile: str) -> None:
    record = record_of(model_asked=hostile, conversation=hostile, upstream=hostile)
    for told in (opened(record), told_at_the_end(record)):
        line = encode_line(told)
        assert line.count(b"\n") == 1
        assert len(line) < 10_000
        assert KEY.encode() not in line
        assert json.loads(line)["request_id"] == "r"


def opened(record: RequestRecord) -> Any:
    """Return what is told of an open request."""
    row = OpenRow(record, None)
    row.refresh(1)
    return row.tell(0, 5000.0, Redactor())
