"""The judge of requests to Qdrant finds what is wrong with them."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fakes.qdrant_contract import Contract

PLACE = "/collections/x/points"
OK: Any = {"time": 0.1, "status": "ok", "result": []}
DONE: Any = {**OK, "result": {"status": "completed"}}


def batch(*vector: object) -> dict[str, Any]:
    return {"batch": {"ids": [1], "vectors": [vector]}}


@pytest.fixture
def contract(shared: Path) -> Contract:
    return Contract(shared / "bench" / "qdrant" / "openapi.json")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("method", "path", "query", "body", "answer", "violation"),
    [
        ("POST", PLACE, {}, {"ids": [7]}, OK, ""),
        ("POST", PLACE, {}, {}, OK, "'ids' is a required property"),
        ("POST", PLACE, {}, {"ids": "7"}, OK, "is not of type 'array'"),
        ("POST", PLACE, {}, {"ids": [7], "more": 1}, OK, "Additional properties"),
        ("POST", PLACE, {"wait": "1"}, {"ids": [7]}, OK, "query parameter wait"),
        ("POST", PLACE, {}, {"ids": [7]}, {**OK, "result": [{}]}, "'id' is a required"),
        ("POST", PLACE, {}, {"ids": [7]}, {**OK, "result": 7}, "answer"),
        ("PUT", PLACE, {}, batch(0.5, 1), DONE, ""),
        ("PUT", PLACE, {}, batch(0.5, "1"), DONE, "not valid under any"),
        ("PUT", PLACE, {}, batch(0.5, True), DONE, "not valid under any"),
        ("PUT", PLACE, {}, batch(0.5, None), DONE, "not valid under any"),
        ("PATCH", PLACE, {}, {"ids": [7]}, OK, "no such operation"),
        ("POST", "/nowhere", {}, {}, OK, "no such operation"),
    ],
)
def test_the_judge(
    contract: Contract,
    method: str,
    path: str,
    query: dict[str, str],
    body: Any,
    answer: Any,
    violation: str,
) -> None:
    contract.judge(method, path, query, orjson.dumps(body), answer)
    assert bool(contract.violations) is bool(violation)
    assert violation in " ".join(contract.violations)


@pytest.mark.shared
def test_an_error_is_judged_too(contract: Contract) -> None:
    contract.judge_error({"time": 0.0, "status": {"error": "x"}})
    assert contract.violations == []
    contract.judge_error({"time": 0.0, "status": "error"})
    assert contract.violations
