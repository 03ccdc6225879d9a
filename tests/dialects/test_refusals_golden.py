"""Recorded error bodies and the texts that users report: class and cure of each.

`pytest tests/dialects/test_refusals_golden.py --update-golden` writes the file anew.
The bodies themselves stay outside of the repository.
"""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byok.dialects.error_bodies import refusal_of
from tests.fakes.replay import bytes_of, recorded

pytestmark = pytest.mark.shared
GOLDEN = Path(__file__).parents[1] / "golden" / "refusals.json"
MOST_UNKNOWN = 8


def bodies(shared: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield the name, the status and the body of each refusal."""
    for item in recorded(shared, "error"):
        raw = bytes_of(shared, item)
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode("utf-8", "replace")
        yield item["id"], item["status"], body
    path = shared / "upstreams" / "refusals.py"
    spec = importlib.util.spec_from_file_location("refusals", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.REFUSALS


def test_refusals_keep_their_class_and_their_cure(
    shared: Path, request: pytest.FixtureRequest
) -> None:
    found = {
        name: [error.kind.value, bool(error.hint)]
        for name, status, body in bodies(shared)
        for error in [refusal_of(body, status)]
    }
    if request.config.getoption("--update-golden"):
        lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(found.items()))
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    assert found == json.loads(GOLDEN.read_text("utf-8"))
    unknown = [name for name, (kind, _) in found.items() if kind == "upstream_refused"]
    assert len(unknown) <= MOST_UNKNOWN, unknown
    assert [name for name, (_, cure) in found.items() if not cure] == unknown
