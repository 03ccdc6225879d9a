"""Token counts of Responses."""

from byok.core.events import Usage
from byok.protocols.v1.responses import write_usage


def test_usage_input_includes_what_was_cached() -> None:
    counts = write_usage(Usage(9, 5, 4, 1, 2))
    assert (counts["input_tokens"], counts["total_tokens"]) == (9, 14)
    assert counts["input_tokens_details"] == {"cached_tokens": 4}
    assert counts["output_tokens_details"] == {"reasoning_tokens": 2}
