"""The judge of bodies, judged by recorded requests and what the API answered."""

import json
from pathlib import Path

import pytest

from tests.fakes.replay import recorded
from tests.fakes.strict_anthropic import broken_rules

# Where the recording left something out that the API was sent.
ELIDED = ("ELIDED_BASE64", "MASSIVE_TEXT")
# Its result names another call than the one before it: accepted when it was recorded.
OLD = "anthropic__dd-trace-py-anthropic-completion-tools-call-with-tool-result-stream"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["anthropic_stream", "error"])
def test_the_judge_agrees_with_the_api(shared: Path, kind: str) -> None:
    judged = 0
    for row in recorded(shared, kind):
        status, body = row.get("status", 200), row["request"]
        if kind == "error" and (status, row["provider"]) != (400, "anthropic"):
            continue
        if not body or row["id"] == OLD or any(w in json.dumps(body) for w in ELIDED):
            continue
        judged += 1
        assert bool(broken_rules(body)) == (status == 400), row["id"]
    assert judged >= (123 if kind == "anthropic_stream" else 5)
