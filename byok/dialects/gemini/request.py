"""Gemini: encoding the request, `POST models/MODEL:streamGenerateContent?alt=sse`."""

import re
from typing import Any
from urllib.parse import quote

from byok.chat import ChatRequest, Json, JsonAnswer, ToolChoice, ToolDefinition, ToolUse
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.gemini.contents import GeminiContents
from byok.dialects.gemini.thinking import thinking_config
from byok.dialects.safe_names import Aliases, spell_name
from byok.dialects.schemas.common import write_schema
from byok.errors import BadRequest
from byok.wire.json_body import write_json

_MODES = {ToolUse.NONE: "NONE", ToolUse.REQUIRED: "ANY"}
_FOLDERS = ("models/", "tunedModels/")
_STEPS = frozenset({".", ".."})  # clients and servers resolve them
_SAFE = "/:@,=+~"
_MOST_STOPS = 5  # API reference, GenerationConfig.stopSequences
_LONGEST_NAME = 64
_NO_PICTURES = "This model does not support some of the images: they were left out."
_FEWER_STOPS = "Gemini takes five stop texts at most, so the others were left out."
_NO_SAMPLING = "This model takes no temperature and no top_p, so they were not sent."


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode a conversation; everything but the model is in the body."""
    names = Aliases(_spell_name)
    tools = [_declaration(tool, names) for tool in chat.tools]
    contents = GeminiContents(names, target)
    contents.add(chat.messages)
    config, notices = _generation_config(chat, target)
    body: dict[str, Any] = contents.fields()
    if tools:
        body["tools"] = [{"functionDeclarations": tools}]
        body |= _tool_config(chat.tool_choice, names)
    if config:
        body["generationConfig"] = config
    if not chat.is_first_turn:
        notices = ()  # they were shown in the first turn
    if contents.hides_picture:
        notices += (_NO_PICTURES,)
    return UpstreamRequest(
        f"{_model_path(target.model)}:streamGenerateContent?alt=sse",
        _with_extra(body, target.extra_body),
        tool_names=names.originals,
        notices=notices,
    )


def _model_path(model: str) -> str:
    """Return the path of a model, whose name may have folders.

    Raises:
        BadRequest: the name leads out of the API's own path.
    """
    path = model if model.startswith(_FOLDERS) else f"models/{model}"
    if not _STEPS.isdisjoint(path.split("/")):
        raise BadRequest(
            f'the model\'s name "{model[:_LONGEST_NAME]}" has "." or ".." as a folder.',
            hint="Check the model's name (byok models).",
        )
    return quote(path, safe=_SAFE)


def _spell_name(name: str, again: int) -> str:
    """Return a name that begins with a letter or _, as the API wants it."""
    spelled = spell_name(name, again)
    is_good = re.match("[A-Za-z_]", spelled)
    return spelled if is_good else f"_{spelled}"[:_LONGEST_NAME]


def _declaration(tool: ToolDefinition, names: Aliases) -> dict[str, Any]:
    raw = write_json({**tool.parameters, "type": "object"})
    return {
        "name": names.alias(tool.name),
        "description": tool.description,
        "parametersJsonSchema": write_schema(raw, narrow=False, plain_keys=False),
    }


def _tool_config(choice: ToolChoice, names: Aliases) -> dict[str, Any]:
    """Return the field for any choice but the default, AUTO."""
    if choice.use not in _MODES:
        return {}
    config: dict[str, Any] = {"mode": _MODES[choice.use]}
    if choice.name and choice.use is ToolUse.REQUIRED:
        config["allowedFunctionNames"] = [names.alias(choice.name)]
    return {"toolConfig": {"functionCallingConfig": config}}


def _generation_config(
    chat: ChatRequest, target: Target
) -> tuple[dict[str, Any], tuple[str, ...]]:
    sampling, facts = chat.sampling, target.facts
    thinking, notices = thinking_config(chat, target)
    config: dict[str, Any] = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": [*sampling.stop[:_MOST_STOPS]] or None,
        **_json_answer(chat.json_answer),
        "thinkingConfig": thinking or None,
    }
    if sampling.max_tokens and facts.max_output:
        config["maxOutputTokens"] = min(sampling.max_tokens, facts.max_output)
    if sampling.stop[_MOST_STOPS:]:
        notices += (_FEWER_STOPS,)
    has_sampling = config["temperature"] is not None or config["topP"] is not None
    if facts.sampling is False and has_sampling:
        config |= {"temperature": None, "topP": None}
        notices += (_NO_SAMPLING,)
    return {key: value for key, value in config.items() if value is not None}, notices


def _json_answer(wanted: JsonAnswer | None) -> dict[str, Any]:
    if wanted is None:
        return {}
    schema = {} if wanted.schema is None else {"responseJsonSchema": wanted.schema}
    return {"responseMimeType": "application/json", **schema}


def _with_extra(body: dict[str, Any], extra: Json) -> dict[str, Any]:
    """Add the user's fields: to objects and lists of tools, in place of other values.

    A search by Google stands beside the tools, a `topK` beside what byok sends.
    """
    out = dict(body)
    for name, value in extra.items():
        sent = out.get(name)
        if isinstance(sent, dict) and isinstance(value, dict):
            out[name] = {**sent, **value}
        elif name == "tools" and isinstance(sent, list) and isinstance(value, list):
            out[name] = [*sent, *value]
        else:
            out[name] = value
    return out
