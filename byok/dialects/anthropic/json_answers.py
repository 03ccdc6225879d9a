"""Messages API: answers that must be JSON.

With a schema, `output_config.format` holds the model to it (the API's guide,
"Structured outputs"); every object of the schema must be closed. Without one, and for
models that refuse the field, the system prompt asks for JSON.
"""

from typing import Any

from byok.chat import JsonAnswer
from byok.dialects.remedies import Body
from byok.wire.json_body import write_json

_ASK = (
    "Answer with one JSON object and nothing else: no words around it, no code fence."
)
_ALLOWED = "It must be valid by this JSON Schema:\n"
_MAPS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "allOf", "oneOf")


def encode_json_answer(
    wanted: JsonAnswer | None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the fields of `output_config`, and blocks for the system prompt."""
    if wanted is None:
        return {}, []
    if wanted.schema is None:
        return {}, [{"type": "text", "text": _ASK}]
    schema = _close_objects(wanted.schema)
    return {"format": {"type": "json_schema", "schema": schema}}, []


def format_as_words(body: Body) -> Body:
    """Ask for the format of an answer in the system prompt instead."""
    output = dict(body.get("output_config") or {})
    format_ = output.pop("format", None)
    if not isinstance(format_, dict):
        return dict(body)
    body = {k: v for k, v in body.items() if k != "output_config"}
    if output:
        body["output_config"] = output
    schema = write_json(format_.get("schema")).decode()
    words = {"type": "text", "text": f"{_ASK} {_ALLOWED}{schema}"}
    return {**body, "system": [*(body.get("system") or ()), words]}


def _close_objects(schema: Any) -> Any:
    """Close all objects of a schema."""
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for name in _MAPS:
        if isinstance(inner := closed.get(name), dict):
            closed[name] = {key: _close_objects(value) for key, value in inner.items()}
    for name in _LISTS:
        if isinstance(inner := closed.get(name), list):
            closed[name] = [_close_objects(value) for value in inner]
    if "items" in closed:
        closed["items"] = _close_objects(closed["items"])
    if closed.get("type") == "object" or "properties" in closed:
        closed["additionalProperties"] = False
    return closed
