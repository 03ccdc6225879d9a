"""The access log: one line of facts for each request."""

import logging

import pytest

from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.server.app import AccessLog, access_line
from tests.fakes.clock import Clock


def record_of(clock: Clock | None = None, **fields: object) -> RequestRecord:
    """A finished request that took a quarter of a second."""
    clock = clock or Clock()
    record = RequestRecord("r1", "POST", "/chat", clock=clock)
    for name, value in fields.items():
        setattr(record, name, value)
    clock.now += 0.25
    record.finish(200)
    return record


def test_access_log_without_an_upstream_has_five_fields() -> None:
    record = record_of(attempts=3, repairs=1, error="bad_body")
    assert access_line(record) == "POST /chat 200 250 ms r1"


def test_access_log_does_not_repeat_an_invalid_method() -> None:
    assert access_line(record_of(method="G\nET")).startswith("? /chat ")


def test_access_log_adds_what_the_upstream_did() -> None:
    record = record_of(upstream="one", model="m", first_byte=0.1)
    assert access_line(record).endswith(" r1 byok:one:m first=100ms")
    record.usage, record.attempts, record.repairs = Usage(1200, 30, 1000), 2, 1
    record.dropped_calls = 3
    record.error = "upstream_cut"
    record.prompt_change = "messages[0], byte 73"
    assert access_line(record).endswith(
        " byok:one:m first=100ms in=1200 cached=1000 out=30 "
        "changed=messages[0]+73 attempts=2 repairs=1 "
        "dropped_calls=3 error=upstream_cut"
    )


def test_access_log_tells_of_a_loop_also_where_no_model_was_asked() -> None:
    record = record_of(loop="ended-failing-6")
    assert access_line(record) == "POST /chat 200 250 ms r1 loop=ended-failing-6"


def test_access_log_cuts_a_long_model_id() -> None:
    assert len(access_line(record_of(upstream="one", model="m" * 500))) < 140


@pytest.mark.parametrize(
    ("trusted", "endpoint", "level"),
    [
        (True, "/chat", logging.INFO),
        (False, "/chat", logging.DEBUG),
        (True, "/byok/daemon", logging.DEBUG),
        (True, "/health", logging.DEBUG),
    ],
)
def test_access_log_shows_client_requests_at_level_info_only(
    trusted: bool, endpoint: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "byok.access")
    AccessLog().request_finished(record_of(trusted=trusted, endpoint=endpoint))
    assert [record.levelno for record in caplog.records] == [level]
