"""Messages API: the list of models, with what the API says each one takes."""

from typing import Any
from urllib.parse import quote

from byok.dialects.base import ModelPage
from byok.dialects.efforts import EFFORTS
from byok.dialects.model_facts import ModelFacts

FIRST_PAGE = "models?limit=1000"
_SANE = range(512, 2**31)


def read_models(body: Any) -> ModelPage:
    """Decode `{"data": [{"id", ...}], "has_more", "last_id"}`; see "List Models"."""
    body = body if isinstance(body, dict) else {}
    rows = body.get("data")
    found = tuple(
        _facts(row)
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]
    )
    last = body.get("last_id")
    if body.get("has_more") is True and isinstance(last, str) and last:
        return ModelPage(found, f"{FIRST_PAGE}&after_id={quote(last, safe='')}")
    return ModelPage(found)


def _facts(row: dict[str, Any]) -> ModelFacts:
    able = row.get("capabilities")
    able = able if isinstance(able, dict) else {}
    thinking, effort = _inner(able, "thinking"), _inner(able, "effort")
    efforts = tuple(name for name in EFFORTS if _supports(effort, name))
    return ModelFacts(
        row["id"],
        window=_size(row.get("max_input_tokens")),
        max_output=_size(row.get("max_tokens")),
        images=_supports(able, "image_input"),
        thinking=_supports(able, "thinking"),
        efforts=efforts,
        adaptive_thinking=_supports(_inner(thinking, "types"), "adaptive"),
    )


def _inner(node: dict[str, Any], name: str) -> dict[str, Any]:
    inner = node.get(name)
    return inner if isinstance(inner, dict) else {}


def _supports(node: dict[str, Any], name: str) -> bool | None:
    """Read `{"supported": true}`; None where the API does not say."""
    supported = _inner(node, name).get("supported")
    return supported if isinstance(supported, bool) else None


def _size(value: Any) -> int:
    return value if type(value) is int and value in _SANE else 0
