"""Changes to a body of Gemini: narrower schemas, no ids, no signatures."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from byok.chat import Json
from byok.dialects.remedies import Body
from byok.dialects.schemas.common import write_schema
from byok.dialects.schemas.gemini import narrow_schema
from byok.dialects.thought_signatures import NOT_CHECKED
from byok.wire.json_body import write_json

Part = dict[str, Any]


def read_tools(body: Json) -> list[Any]:
    """Return the functions offered in a body; tools of Google's are none."""
    return [
        function
        for tool in _objects(body.get("tools"))
        for function in _objects(tool.get("functionDeclarations"))
    ]


def parts_of(body: Json) -> Iterator[Json]:
    """Yield all parts of the conversation."""
    for content in body.get("contents") or ():
        yield from content["parts"]


def narrow_schemas(body: Json) -> Body:
    """Write all schemas in the subset that every version of the API takes."""
    body = dict(body)
    if isinstance(tools := body.get("tools"), list):
        body["tools"] = [*map(_narrow_tool, tools)]
    config = body.get("generationConfig")
    if isinstance(config, dict) and "responseJsonSchema" in config:
        schema = config["responseJsonSchema"]
        rest = {k: v for k, v in config.items() if k != "responseJsonSchema"}
        body["generationConfig"] = {**rest, "responseSchema": narrow_schema(schema)}
    return body


def without_ids(body: Json) -> Body:
    """Remove the ids of calls and results, which some versions of the API refuse."""
    return _with_parts(body, _without_id)


def without_signatures(body: Json, version: str) -> Body:
    """Replace the signatures of calls in one conversation, and drop the others."""
    if conversation_version(body) != version:
        return dict(body)
    return _with_parts(body, _without_signature)


def conversation_version(body: Json) -> str:
    """Return a digest of the first content, which stays in all turns."""
    first = write_json([*body["contents"][:1]])
    return hashlib.blake2b(first, digest_size=8).hexdigest()


def _objects(value: Any) -> Iterator[Json]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def _narrow_tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or "functionDeclarations" not in tool:
        return tool  # one of Google's own
    narrow = [*map(_narrow, _objects(tool["functionDeclarations"]))]
    return {**tool, "functionDeclarations": narrow}


def _narrow(function: Json) -> Json:
    if "parametersJsonSchema" not in function:
        return function
    raw = write_json(function["parametersJsonSchema"])
    rest = {k: v for k, v in function.items() if k != "parametersJsonSchema"}
    return {**rest, "parameters": write_schema(raw, narrow=True, plain_keys=False)}


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
