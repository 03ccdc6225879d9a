"""Remedies of Gemini: what to change in a request after each refusal."""

import re

from byok.chat import Json
from byok.dialects.chat_rows import CHAT_ROWS
from byok.dialects.gemini import changes
from byok.dialects.model_facts import ModelFacts
from byok.dialects.parameter_rows import (
    drop_parameter,
    has_parameter,
    read_parameter,
    set_parameter,
)
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow, RemedyTable
from byok.errors import RefusalKind

_CAP = "generationConfig.maxOutputTokens"
_THINKING = "generationConfig.thinkingConfig"
_ANSWER = ("generationConfig.responseJsonSchema", "generationConfig.responseSchema")
_FORMAT = "generationConfig.responseMimeType"
# Parameters that may be dropped without changing the meaning of a request.
_DROPPABLE = (
    "generationConfig.temperature",
    "generationConfig.topP",
    "generationConfig.stopSequences",
    _CAP,
    "toolConfig",
)
_UP_TO = re.compile(r"to (\d{1,9}) \((inclusive|exclusive)\)")


def _words(text: str) -> str:
    """Return a refusal without underscores: the API writes names in both ways."""
    return text.lower().replace("_", "")


def _names(refused: RefusedRequest, path: str) -> bool:
    """Tell whether a refusal names a parameter that was sent."""
    last = path.rpartition(".")[2].lower()
    is_named = re.search(rf"\b{last}\b", _words(refused.text))
    is_request = refused.error.upstream_status in (400, 404, 422)
    return bool(is_named) and is_request and has_parameter(refused.body, path)


def _json_schemas(refused: RefusedRequest) -> tuple[str, str] | None:
    """Tell whether the API refuses JSON Schema, or what is in one."""
    said = _words(refused.text)
    is_about = (
        refused.error.kind is RefusalKind.BAD_SCHEMA
        or "parametersjsonschema" in said
        or "responsejsonschema" in said
    )
    sent = any(
        "parametersJsonSchema" in tool for tool in changes.read_tools(refused.body)
    ) or has_parameter(refused.body, _ANSWER[0])
    return ("", "") if is_about and sent else None


def _ids(refused: RefusedRequest) -> tuple[str, str] | None:
    is_named = re.search(r"unknown name \W?id\b.*function_?(?:call|response)",
                         refused.text.lower())  # fmt: skip
    return ("", "") if is_named else None


def _signatures(refused: RefusedRequest) -> tuple[str, str] | None:
    is_named = "thoughtsignature" in _words(refused.text).replace(" ", "")
    signed = any("thoughtSignature" in part for part in changes.parts_of(refused.body))
    if not (is_named and signed) or refused.error.upstream_status != 400:
        return None
    return ("", changes.conversation_version(refused.body))


def _thinking(refused: RefusedRequest) -> tuple[str, str] | None:
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


def _cap(refused: RefusedRequest) -> tuple[str, str] | None:
    """Return the longest answer that a refusal names."""
    value = read_parameter(refused.body, _CAP)
    found = _UP_TO.search(refused.text.lower())
    if not found or not _names(refused, _CAP) or type(value) is not int:
        return None
    most = int(found[1]) - (found[2] == "exclusive")
    return (_CAP, str(most)) if 0 < most < value else None


def _lower(body: Json, remedy: Remedy) -> Body:
    value, most = read_parameter(body, remedy.what), int(remedy.version)
    is_above = type(value) is int and value > most
    return set_parameter(body, remedy.what, most) if is_above else dict(body)


def _json_answer(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find refusals of JSON answers, which older models do not give beside tools."""
    said = _words(refused.text)
    is_named = "mime type" in said or "responsemimetype" in said or "json mode" in said
    is_sent = has_parameter(refused.body, _FORMAT)
    return ("", "") if is_named and is_sent else None


def _any_answer(body: Json) -> Body:
    for path in (*_ANSWER, _FORMAT):
        body = drop_parameter(body, path)
    return dict(body)


def _parameter(refused: RefusedRequest) -> tuple[str, str] | None:
    paths = (*_DROPPABLE, *refused.extra)
    return next(((path, "") for path in paths if _names(refused, path)), None)


# The first row that helps counts. What a schema is refused for may have the name of a
# parameter, so tools come first.
REMEDIES: RemedyTable = {
    "signatures": RemedyRow(
        _signatures,
        lambda body, remedy: changes.without_signatures(body, remedy.version),
    ),
    "no ids": RemedyRow(_ids, lambda body, _: changes.without_ids(body)),
    "narrow schemas": RemedyRow(
        _json_schemas, lambda body, _: changes.narrow_schemas(body)
    ),
    **CHAT_ROWS,
    "thinking": RemedyRow(
        _thinking, lambda body, remedy: drop_parameter(body, remedy.what)
    ),
    "json": RemedyRow(
        _json_answer,
        lambda body, _: _any_answer(body),
        "This model gives no JSON beside tools, so it was only asked in words.",
    ),
    "lower": RemedyRow(
        _cap,
        _lower,
        teaches=lambda remedy: ModelFacts("", max_output=int(remedy.version)),
    ),
    "parameter": RemedyRow(
        _parameter, lambda body, remedy: drop_parameter(body, remedy.what)
    ),
}
