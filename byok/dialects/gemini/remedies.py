"""Remedies of Gemini: what to change in a request after each refusal."""

from collections.abc import Callable
from typing import Any

from byok.core.chat import Json
from byok.core.errors import RefusalKind
from byok.core.wire.json_body import write_json
from byok.core.wire.json_fields import read_objects
from byok.dialects.chat_changes import CHAT_ROWS
from byok.dialects.remedies import (
    Body,
    RefusedRequest,
    Remedy,
    RemedyMatch,
    RemedyRow,
    RemedyTable,
    digest_of,
    drop_named,
    drop_row,
    lower_row,
    read_parameter,
    when,
)
from byok.dialects.safe_names import NOT_CHECKED
from byok.dialects.schemas import write_parameters

# Changes to a body of Gemini: narrower schemas, no ids, no signatures.


Part = dict[str, Any]


def narrow_schemas(body: Json, _: Remedy) -> Body:
    """Write all schemas in the subset that every version of the API takes."""
    body = dict(body)
    if isinstance(tools := body.get("tools"), list):
        body["tools"] = [*map(_narrow_tool, tools)]
    config = body.get("generationConfig")
    if isinstance(config, dict) and "responseJsonSchema" in config:
        schema = write_parameters(config["responseJsonSchema"], narrow=True)
        rest = {k: v for k, v in config.items() if k != "responseJsonSchema"}
        body["generationConfig"] = {**rest, "responseSchema": schema}
    return body


def without_ids(body: Json, _: Remedy) -> Body:
    """Remove the ids of calls and results, which some versions of the API refuse."""
    return _with_parts(body, _without_id)


def without_signatures(body: Json, remedy: Remedy) -> Body:
    """Replace the signatures of calls in one conversation, and drop the others."""
    if conversation_version(body) != remedy.version:
        return dict(body)
    return _with_parts(body, _without_signature)


def conversation_version(body: Json) -> str:
    """Return a digest of the first content, which stays in all turns."""
    return digest_of(write_json([*body["contents"][:1]]))


def _narrow_tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or "functionDeclarations" not in tool:
        return tool  # one of Google's own
    narrow = [*map(_narrow, read_objects(tool, "functionDeclarations"))]
    return {**tool, "functionDeclarations": narrow}


def _narrow(function: Json) -> Json:
    if "parametersJsonSchema" not in function:
        return function
    schema = write_parameters(function["parametersJsonSchema"], narrow=True)
    rest = {k: v for k, v in function.items() if k != "parametersJsonSchema"}
    return {**rest, "parameters": schema}


def _with_parts(body: Json, change: Callable[[Part], Part | None]) -> Body:
    """Return a body with changed parts; contents without any part are left out."""
    contents = []
    for content in body.get("contents") or ():
        parts = [new for part in content["parts"] if (new := change(part))]
        if parts:
            contents.append({**content, "parts": parts})
    return {**body, "contents": contents}


def _without_id(part: Part) -> Part:
    return {
        kind: {k: v for k, v in value.items() if k != "id"}
        if kind in ("functionCall", "functionResponse")
        else value
        for kind, value in part.items()
    }


def _without_signature(part: Part) -> Part | None:
    if "thoughtSignature" not in part:
        return part
    if "functionCall" in part:
        return {**part, "thoughtSignature": NOT_CHECKED}
    rest = {k: v for k, v in part.items() if k != "thoughtSignature"}
    is_text = bool(rest.get("text")) and "thought" not in rest
    return rest if is_text else None


_CAP = "generationConfig.maxOutputTokens"
_THINKING = "generationConfig.thinkingConfig"
# Parameters that may be dropped without changing the meaning of a request.
_DROPPABLE = (
    "generationConfig.temperature",
    "generationConfig.topP",
    "generationConfig.stopSequences",
    _CAP,
)
_ID = r"unknown name \W?id\b.*function_?(?:call|response)"


def _words(text: str) -> str:
    """Return a refusal without underscores: the API writes names in both ways."""
    return text.lower().replace("_", "")


def _json_schemas(refused: RefusedRequest) -> RemedyMatch:
    """Tell whether the API refuses JSON Schema, or what is in one."""
    said = _words(refused.text)
    is_about = (
        refused.error.kind is RefusalKind.BAD_SCHEMA
        or "parametersjsonschema" in said
        or "responsejsonschema" in said
    )
    return ("", "") if is_about else None


def _signatures(refused: RefusedRequest) -> RemedyMatch:
    is_named = "thoughtsignature" in _words(refused.text).replace(" ", "")
    if not is_named or refused.error.upstream_status != 400:
        return None
    return ("", conversation_version(refused.body))


def _thinking(refused: RefusedRequest) -> RemedyMatch:
    """Drop level or budget first, then everything about thinking."""
    said, config = _words(refused.text), read_parameter(refused.body, _THINKING)
    if not isinstance(config, dict) or "thinking" not in said:
        return None
    if refused.error.upstream_status != 400 or "thoughtsignature" in said:
        return None
    for name in ("thinkingLevel", "thinkingBudget"):
        if name in config:
            return (f"{_THINKING}.{name}", "")
    return (_THINKING, "")


# The first row that helps counts. What a schema is refused for may have the name of a
# parameter, so tools come first.
REMEDIES: RemedyTable = {
    "signatures": RemedyRow(_signatures, without_signatures),
    "no ids": RemedyRow(when(_ID), without_ids),
    "narrow schemas": RemedyRow(_json_schemas, narrow_schemas),
    **CHAT_ROWS,
    "thinking": RemedyRow(_thinking, drop_named),
    "lower": lower_row((_CAP,)),
    "parameter": drop_row(_DROPPABLE),
}
