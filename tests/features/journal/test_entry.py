"""An entry holds facts of a record, and no more of them than there is room for."""

import pytest

from byok.core.errors import UpstreamGarbled
from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.dialects.model_facts import Price
from byok.features.journal.entry import make_entry, name_calls
from tests.fakes.clock import Clock


def price(upstream: str, model: str) -> Price | None:
    return Price(1.0, 2.0, 0.5, 3.0) if (upstream, model) == ("one", "m") else None


def record_of(**fields: object) -> RequestRecord:
    record = RequestRecord("r1", "POST", "/chat", clock=(clock := Clock()))
    for name, value in fields.items():
        setattr(record, name, value)
    clock.now += 2.5
    record.finish(200)
    return record


def test_entry_of_a_request_without_a_model_has_no_tokens_and_cost_nothing() -> None:
    entry = make_entry(record_of(), 1000.0, price)
    assert (entry.started, entry.seconds, entry.endpoint) == (997.5, 2.5, "/chat")
    assert entry[12:17] == (None, None, None, None, 0.0)
    assert (entry.outcome, entry.first_byte) == ("ok", None)


def test_entry_has_the_tokens_of_all_models_and_their_cost() -> None:
    record = record_of(
        upstream="one", model="m", attempts=2, first_byte=0.4, model_asked="byok:one:m"
    )
    record.usage = Usage(1_000_000, 100_000, 400_000, 100_000, cache_told=True)
    record.note_own_usage("one", "m", Usage(1000, 10))
    entry = make_entry(record, 1000.0, price)
    assert entry.input_tokens == 1_001_000
    assert entry.output_tokens == 100_010
    assert (entry.cache_read_tokens, entry.cache_written_tokens) == (400_000, 100_000)
    assert entry.cost == 0.5 + 0.2 + 0.3 + 0.2 + (1000 + 20) / 1_000_000


def test_entry_does_not_take_an_untold_cache_for_an_empty_one() -> None:
    record = record_of(upstream="one", model="m", attempts=1)
    record.usage = Usage(1000, 10)
    entry = make_entry(record, 1000.0, price)
    assert (entry.cache_read_tokens, entry.cache_written_tokens) == (None, None)
    record.usage = Usage(1000, 10, cache_told=True)
    entry = make_entry(record, 1000.0, price)
    assert (entry.cache_read_tokens, entry.cache_written_tokens) == (0, 0)


def test_entry_of_a_failure_has_its_code_and_class() -> None:
    record = record_of(upstream="one", model="m", attempts=1)
    garbled, cut = UpstreamGarbled("no JSON"), UpstreamGarbled("no", code="cut")
    for error in (cut, cut, garbled):
        record.note_retry(error)
    record.note_error(garbled)
    entry = make_entry(record, 1000.0, price)
    assert (entry.outcome, entry.error) == ("failed", "upstream_garbled")
    assert entry.retried == "cut upstream_garbled"
    assert (entry.error_class, entry.cost) == ("UpstreamGarbled", None)


def test_entry_names_the_tools_that_were_called() -> None:
    record = record_of(
        tool_calls=["view", "view", "save-file"],
        loop="warned-failing-3",
        prompt_change="messages[2], byte 7",
    )
    entry = make_entry(record, 1000.0, price)
    assert entry.tool_calls == "view x2, save-file"
    assert (entry.loop, entry.prompt_change) == (record.loop, record.prompt_change)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["view"], "view"),
        (["view"] * 3, "view x3"),
        (["view", "save-file", "view", "view"], "view, save-file, view x2"),
        (["n" * 5000], "n" * 60),
        (
            [f"tool-{n:04}" * 6 for n in range(9)],
            ", ".join(f"tool-{n:04}" * 6 for n in range(3)) + ", +6",
        ),
    ],
)
def test_names_of_tools_are_few(names: list[str], text: str) -> None:
    assert name_calls(names) == text


def test_entry_limits_what_others_chose() -> None:
    record = record_of(
        model="m" * 5000,
        model_asked="a" * 5000,
        conversation="c" * 5000,
        attempts=1,
        usage=Usage(10**30, 10**30, 10**30, 10**30, cache_told=True),
    )
    entry = make_entry(record, 1000.0, price)
    assert max(len(value) for value in entry if isinstance(value, str)) == 200
    assert entry[12:16] == (10**12,) * 4


@pytest.mark.parametrize(
    ("folders", "name"),
    [
        ((), ""),
        (("/home/mia/shop/", "/other"), "shop"),
        (("C:\\Users\\mia\\shop\\",), "shop"),
        (("/", "\\", "/srv/api"), "api"),
        (("/srv/\u6570\u636e \u202e<b>",), "\u6570\u636e \u202e<b>"),
        (("/srv/" + "n" * 500,), "n" * 200),
    ],
)
def test_a_folder_is_named_without_its_path(
    folders: tuple[str, ...], name: str
) -> None:
    assert make_entry(record_of(folders=folders), 1000.0, price).folder == name
