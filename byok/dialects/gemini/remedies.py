"""Remedies of Gemini: how to change a request after each refusal."""

from collections.abc import Callable
from typing import Any, TypeAlias

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

Part: TypeAlias = dict[str, Any]
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


def _normalise(text: str) -> str:
    """Return a refusal's text in one form: the API writes a_name and aName."""
    return text.lower().replace("_", "")


def _find_json_schemas(refused: RefusedRequest) -> RemedyMatch:
    """Find out whether the API refuses JSON Schema, or a keyword of it."""
    text = _normalise(refused.text)
    is_about_schemas = (
        refused.error.kind is RefusalKind.BAD_SCHEMA
        or "parametersjsonschema" in text
        or "responsejsonschema" in text
    )
    return ("", "") if is_about_schemas else None


def _find_signatures(refused: RefusedRequest) -> RemedyMatch:
    is_named = "thoughtsignature" in _normalise(refused.text).replace(" ", "")
    if not is_named or refused.error.upstream_status != 400:
        return None
    return ("", conversation_version(refused.body))


def _find_thinking(refused: RefusedRequest) -> RemedyMatch:
    """Name level or budget first, then everything about thinking."""
    text, config = _normalise(refused.text), read_parameter(refused.body, _THINKING)
    if not isinstance(config, dict) or "thinking" not in text:
        return None
    if refused.error.upstream_status != 400 or "thoughtsignature" in text:
        return None
    for name in ("thinkingLevel", "thinkingBudget"):
        if name in config:
            return (f"{_THINKING}.{name}", "")
    return (_THINKING, "")


def _narrow_schemas(body: Json, _: Remedy) -> Body:
    """Write all schemas in the subset that every version of the API accepts."""
    body = dict(body)
    if isinstance(tools := body.get("tools"), list):
        body["tools"] = [*map(_narrow_tool, tools)]
    config = body.get("generationConfig")
    if isinstance(config, dict) and "responseJsonSchema" in config:
        schema = write_parameters(config["responseJsonSchema"], narrow=True)
        others = {k: v for k, v in config.items() if k != "responseJsonSchema"}
        body["generationConfig"] = {**others, "responseSchema": schema}
    return body


def _remove_ids(body: Json, _: Remedy) -> Body:
    """Remove the ids of calls and results, which some versions of the API refuse."""
    return _change_parts(body, _without_id)


def _replace_signatures(body: Json, remedy: Remedy) -> Body:
    """Replace the signatures of calls, and drop others, in the refused conversation."""
    if conversation_version(body) != remedy.version:
        return dict(body)
    return _change_parts(body, _without_signature)


def conversation_version(body: Json) -> str:
    """Return a digest of the first content, which is the same in all turns."""
    return digest_of(write_json([*body["contents"][:1]]))


def _narrow_tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or "functionDeclarations" not in tool:
        return tool  # a tool of Google
    functions = read_objects(tool, "functionDeclarations")
    return {**tool, "functionDeclarations": [*map(_narrow_function, functions)]}


def _narrow_function(function: Json) -> Json:
    if "parametersJsonSchema" not in function:
        return function
    schema = write_parameters(function["parametersJsonSchema"], narrow=True)
    others = {k: v for k, v in function.items() if k != "parametersJsonSchema"}
    return {**others, "parameters": schema}


def _change_parts(body: Json, change: Callable[[Part], Part | None]) -> Body:
    """Return a body with changed parts; contents without any part are dropped."""
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
    bare = {k: v for k, v in part.items() if k != "thoughtSignature"}
    is_text = bool(bare.get("text")) and "thought" not in bare
    return bare if is_text else None


# The first row that helps counts. A refused part of a schema may have the name of a
# parameter, so rows about tools come first.
REMEDIES: RemedyTable = {
    "signatures": RemedyRow(_find_signatures, _replace_signatures),
    "no ids": RemedyRow(when(_ID), _remove_ids),
    "narrow schemas": RemedyRow(_find_json_schemas, _narrow_schemas),
    **CHAT_ROWS,
    "thinking": RemedyRow(_find_thinking, drop_named),
    "lower": lower_row((_CAP,)),
    "parameter": drop_row(_DROPPABLE),
}
