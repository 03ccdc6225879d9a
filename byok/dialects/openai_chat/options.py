"""The parameters of a Chat Completions request: sampling, effort, tool choice, JSON.

What the model or the vendor refuses is left out, and a notice says so.
"""

from typing import Any

from byok.chat import ChatRequest, JsonAnswer, ToolUse
from byok.dialects.base import Target
from byok.dialects.model_facts import Replay
from byok.dialects.openai_chat.effort import effort_fields
from byok.dialects.openai_chat.quirks import JsonForm, Quirks
from byok.dialects.openai_chat.replay import replay_of
from byok.dialects.parameter_rows import set_parameter
from byok.dialects.presets import OPENAI_CHAT
from byok.dialects.safe_names import Aliases
from byok.dialects.schemas.common import write_schema
from byok.wire.json_body import write_json

_NO_SAMPLING = "This model has no setting for temperature and top_p: neither was sent."
_NO_FORCE = "This upstream cannot be told to call a tool, so the model may decide."
_NO_JSON = "This upstream cannot be told to answer in JSON."
_NO_SCHEMA = "This upstream takes no schema for its answer, only that it is JSON."
_NO_EFFORT = (
    "This model calls tools in this API only without reasoning, so it was asked not to "
    "reason."
)


def add_options(
    body: dict[str, Any],
    chat: ChatRequest,
    target: Target,
    quirks: Quirks,
    names: Aliases,
) -> list[str]:
    """Add the parameters to a body; return the notices about what was left out."""
    body.update(quirks.always)
    if body.get("tools") and target.facts.thinking:
        body.update(quirks.with_tools)
    is_trained = target.facts.family == "qwen"
    if quirks.preserve_thinking and is_trained and _keeps_all(target, quirks):
        body.update(set_parameter(body, quirks.preserve_thinking, True))
    found = (
        _add_tool_choice(body, chat, quirks, names),
        _add_sampling(body, chat, target, quirks),
        _add_effort(body, chat, target, quirks),
        _add_json(body, chat.json_answer, quirks),
    )
    return [notice for notice in found if notice]


def _keeps_all(target: Target, quirks: Quirks) -> bool:
    """Tell whether the reasoning of all turns goes back."""
    return replay_of(target, quirks) is Replay.EVERY_TURN


def _add_tool_choice(
    body: dict[str, Any], chat: ChatRequest, quirks: Quirks, names: Aliases
) -> str:
    if not body.get("tools"):
        return ""
    choice = chat.tool_choice
    forced = choice.use is not ToolUse.AUTO
    if forced and not quirks.forced_tools and choice.use is ToolUse.NONE:
        del body["tools"]
        return ""
    if forced and quirks.forced_tools:
        body["tool_choice"] = choice.use.value
        if choice.use is ToolUse.REQUIRED and choice.name:
            function = {"name": names.alias(choice.name)}
            body["tool_choice"] = {"type": "function", "function": function}
    elif quirks.tool_choice:
        body["tool_choice"] = "auto"
    if quirks.parallel_tool_calls and not chat.client_parallel_tools:
        body["parallel_tool_calls"] = False
    return _NO_FORCE if forced and not quirks.forced_tools else ""


def _add_sampling(
    body: dict[str, Any], chat: ChatRequest, target: Target, quirks: Quirks
) -> str:
    sampling, facts = chat.sampling, target.facts
    if (cap := sampling.max_tokens) is not None:
        body[quirks.output_cap] = min(cap, facts.max_output or cap)
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    given = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    given = {name: value for name, value in given.items() if value is not None}
    if given and facts.sampling is False:
        return _NO_SAMPLING
    body.update(given)
    return ""


def _add_effort(
    body: dict[str, Any], chat: ChatRequest, target: Target, quirks: Quirks
) -> str:
    facts, wanted = target.facts, chat.sampling.effort
    elsewhere = quirks.tools_without_effort and facts.dialect not in ("", OPENAI_CHAT)
    if elsewhere and body.get("tools") and "none" in facts.efforts:
        wanted, notice = "none", _NO_EFFORT if wanted != "none" else ""
        fields, _ = effort_fields(wanted, facts, quirks.effort)
    else:
        fields, notice = effort_fields(wanted, facts, quirks.effort)
    for name, value in fields.items():
        known = body.get(name)
        body[name] = {**known, **value} if isinstance(known, dict) else value
    return notice


def _add_json(body: dict[str, Any], answer: JsonAnswer | None, quirks: Quirks) -> str:
    if answer is None:
        return ""
    form = quirks.json_answer
    if form is JsonForm.NONE:
        return _NO_JSON
    if answer.schema is None or form is JsonForm.OBJECT:
        body["response_format"] = {"type": JsonForm.OBJECT.value}
        return "" if answer.schema is None else _NO_SCHEMA
    schema = write_schema(
        write_json(answer.schema),
        narrow=quirks.narrow_schemas,
        plain_keys=quirks.plain_keys,
    )
    inner = {"name": answer.name, "schema": schema}
    body["response_format"] = {"type": JsonForm.SCHEMA.value, "json_schema": inner}
    return ""
