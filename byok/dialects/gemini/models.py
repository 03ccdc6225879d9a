"""Gemini's model list: names, limits, and whether a model generates text and thinks."""

from typing import Any
from urllib.parse import quote

from byok.dialects.base import ModelPage
from byok.dialects.model_facts import ModelFacts

MODELS_PATH = "models?pageSize=1000"
_FOLDER = "models/"
_GENERATES = "generateContent"


def read_models(body: Any) -> ModelPage:
    """Decode a page of `GET models`; models that generate no text are left out."""
    body = body if isinstance(body, dict) else {}
    rows, token = body.get("models"), body.get("nextPageToken")
    found = [row for row in rows if _is_usable(row)] if isinstance(rows, list) else []
    is_last = not isinstance(token, str) or not token
    path = "" if is_last else f"{MODELS_PATH}&pageToken={quote(str(token), safe='')}"
    return ModelPage(tuple(map(_facts, found)), path)


def _is_usable(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    name, methods = row.get("name"), row.get("supportedGenerationMethods")
    is_named = isinstance(name, str) and name.removeprefix(_FOLDER) != ""
    return is_named and (not isinstance(methods, list) or _GENERATES in methods)


def _facts(row: dict[str, Any]) -> ModelFacts:
    """Return the facts; a field that is missing may only be unknown."""
    return ModelFacts(
        row["name"].removeprefix(_FOLDER),
        window=_count(row.get("inputTokenLimit")),
        max_output=_count(row.get("outputTokenLimit")),
        thinking=True if row.get("thinking") is True else None,
    )


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
