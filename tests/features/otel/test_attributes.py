"""Spans' attributes: the conventions' own names, bounded, and no content."""

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.core.redact import Redactor
from byok.features.otel.spans import attributes_of, span_name
from tests.fakes.clock import Clock


def record_of(endpoint: str = "/chat-stream") -> RequestRecord:
    record = RequestRecord("r1", endpoint=endpoint, clock=Clock())
    record.upstream, record.model, record.attempts = "mine", "m", 2
    record.usage, record.first_byte = Usage(100, 10, 60, 20, 5), 0.5
    record.conversation = "c0ffee"
    return record


def test_names_are_those_of_the_conventions() -> None:
    record = record_of()
    record.finish(200)
    found = attributes_of(record, {"mine": "xai"}, 0.25, str)
    known = [*vars(gen_ai_attributes).values()]
    assert [n for n in found if n.startswith("gen_ai.") and n not in known] == []
    assert span_name(record, str) == "chat m"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "x_ai",
        "gen_ai.request.model": "m",
        "gen_ai.conversation.id": "c0ffee",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "gen_ai.response.time_to_first_chunk": 0.5,
        "byok.cost_usd": 0.25,
        "byok.attempts": 2,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "error.type" not in found


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [(200, "upstream_refused", "upstream_refused"), (499, "", "cancelled")],
    ids=["failed", "cancelled"],
)
def test_a_failure_has_a_type(status: int, error: str, told: str) -> None:
    record = record_of()
    record.error = error
    record.finish(status)
    assert attributes_of(record, {}, None, str)["error.type"] == told


def test_an_unknown_cost_is_left_out() -> None:
    record = record_of("/completion")
    record.finish(200)
    found = attributes_of(record, {}, None, str)
    assert "byok.cost_usd" not in found
    assert found["gen_ai.operation.name"] == "text_completion"


def test_hostile_names_are_short_and_hold_no_key() -> None:
    record = record_of()
    record.model = "sk-" + "x" * 40 + "\x1b\ud800" + "m" * 10**6
    record.usage = Usage(10**40, -3)
    record.finish(200)
    found = attributes_of(record, {}, None, Redactor())
    model = str(found["gen_ai.request.model"])
    assert model.startswith("[redacted]\\x1b\\ud800m")
    assert len(model) == 200
    assert found["gen_ai.usage.input_tokens"] == 10**12
    assert found["gen_ai.usage.output_tokens"] == 0
