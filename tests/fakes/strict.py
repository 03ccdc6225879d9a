"""An upstream that enforces OpenAI's rules for chat/completions to the letter."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from aiohttp import web

from tests.fakes.upstream import FakeUpstream, Script, answer, play, tool_answer

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_ID = re.compile(r"[ -~]{1,40}\Z")
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,(.+)\Z", re.DOTALL)
_BODY_KEYS = """
    messages model stream stream_options tools tool_choice parallel_tool_calls
    temperature top_p max_tokens max_completion_tokens frequency_penalty
    presence_penalty logit_bias logprobs top_logprobs n seed stop user store
    metadata modalities audio prediction reasoning_effort response_format
    service_tier verbosity web_search_options prompt_cache_key safety_identifier
"""
_MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio"},
    "tool": {"role", "content", "tool_call_id"},
}


class StrictUpstream(FakeUpstream):
    """Refuses what OpenAI refuses; calls the last tool offered, else says "Fine."."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[str] = []

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        if reasons := broken_rules(body):
            self.refusals += reasons
            error = {"message": "; ".join(reasons), "type": "invalid_request_error"}
            return web.json_response({"error": error}, status=400)
        tools = body.get("tools")
        pieces = (
            tool_answer(tools[-1]["function"]["name"], "{}")
            if tools
            else answer("Fine.")
        )
        return await play(request, Script(pieces))


def broken_rules(
    body: Any, *, more: Iterable[str] = (), spoken: Iterable[str] = ()
) -> list[str]:
    """Return every rule that a request body breaks; none of a good one.

    `more` are further fields of a body, `spoken` further fields of its messages.
    """
    if not isinstance(body, dict):
        return ["the body is no object"]
    conversation = _conversation(body.get("messages"), set(spoken))
    return [*_envelope(body, set(more)), *_tools(body), *conversation]


def _envelope(body: dict[str, Any], more: set[str]) -> Iterator[str]:
    for key in sorted(body.keys() - set(_BODY_KEYS.split()) - more):
        yield f"unknown key {key}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model is missing"
    if body.get("stream") is not True:
        yield "stream is not true"
    for key in ("tool_choice", "parallel_tool_calls"):
        if key in body and not body.get("tools"):
            yield f"{key} without tools"


def _tools(body: dict[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        return
    if not isinstance(body["tools"], list) or not body["tools"]:
        yield "tools is empty or no array"
        return
    names = [tool.get("function", {}).get("name") for tool in body["tools"]]
    if len(set(names)) < len(names):
        yield "two tools share a name"
    for tool, name in zip(body["tools"], names, strict=True):
        if tool.get("type") != "function" or not matches(_NAME, name):
            yield f"tool name {name!r}"
        parameters = tool.get("function", {}).get("parameters")
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            yield f"parameters of {name!r} are no object schema"
        elif not isinstance(parameters.get("properties", {}), dict):
            yield f"properties of {name!r} are no object"


def _conversation(messages: Any, spoken: set[str]) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages is empty or no array"
        return
    roles = [message.get("role") for message in messages]
    if unknown := set(roles) - _MESSAGE_KEYS.keys():
        yield f"unknown roles {unknown}"
        return
    for message in messages:
        yield from _message(message, spoken)
    talk = [role for role in roles if role not in ("system", "developer")]
    if not talk or talk[0] != "user":
        yield "the conversation does not begin with the user"
    if roles[-1] not in ("user", "tool"):
        yield f"the last message is {roles[-1]}'s"
    for one, other in pairwise(roles):
        if one == other and one in ("user", "assistant"):
            yield f"two {one} messages in a row"
    yield from _pairing(messages)


def _message(message: dict[str, Any], spoken: set[str]) -> Iterator[str]:
    role, content = message["role"], message.get("content")
    if unknown := message.keys() - _MESSAGE_KEYS[role] - spoken:
        yield f"{role} message with {sorted(unknown)}"
    if isinstance(content, list):
        if not content:
            yield f"{role} content is an empty array"
        for part in content:
            yield from _part(part, role)
    elif content is None:
        if role != "assistant" or not message.get("tool_calls"):
            yield f"{role} content is null"
    elif not isinstance(content, str):
        yield f"{role} content is a {type(content).__name__}"
    if "tool_calls" in message:
        yield from _calls(message["tool_calls"])


def _part(part: Any, role: str) -> Iterator[str]:
    match part:
        case {"type": "text", "text": str(text)}:
            if not text:
                yield "an empty text part"
        case {"type": "image_url", "image_url": {"url": str(url)}} if role == "user":
            found = _PICTURE.match(url)
            if not found or not is_base64(found[1]):
                yield f"image_url {url[:40]!r}"
        case _:
            yield f"{role} part {str(part)[:40]}"


def _calls(calls: Any) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield "tool_calls is empty or no array"
        return
    ids = [call.get("id") for call in calls]
    if len(set(ids)) < len(ids):
        yield f"tool call ids repeat: {ids}"
    for call in calls:
        function = call.get("function", {})
        if call.get("type") != "function" or not matches(_ID, call.get("id")):
            yield f"tool call id {call.get('id')!r}"
        if not matches(_NAME, function.get("name")):
            yield f"function name {function.get('name')!r}"
        if not is_object(function.get("arguments")):
            yield f"arguments {function.get('arguments')!r}"


def _pairing(messages: list[dict[str, Any]]) -> Iterator[str]:
    open_ids: list[str] = []
    for message in [*messages, {"role": "end"}]:
        if message["role"] == "tool":
            answered = message.get("tool_call_id")
            if answered in open_ids:
                open_ids.remove(answered)
            else:
                yield f"tool message answers {answered!r}, which is no open call"
            continue
        if open_ids:
            yield f"calls without a tool message: {open_ids}"
        open_ids = [call["id"] for call in message.get("tool_calls") or []]


def matches(pattern: re.Pattern[str], text: Any) -> bool:
    return isinstance(text, str) and pattern.match(text) is not None


def is_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True
