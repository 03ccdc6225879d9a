"""A body of Gemini: the tools in it, narrower schemas, text for calls and pictures."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from byok.chat import Json
from byok.dialects.records import ABOUT_RECORDS, NO_PICTURE, call_record
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


def offer_tools(body: Json, functions: Sequence[Json]) -> Body:
    """Return a body with these functions; Google's own tools stay."""
    tools = [{"functionDeclarations": [*functions]}] if functions else []
    tools += [t for t in body.get("tools") or () if "functionDeclarations" not in t]
    drop = {"tools"} if functions else {"tools", "toolConfig"}
    rest = {key: value for key, value in body.items() if key not in drop}
    return {**rest, "tools": tools} if tools else rest


def called_tools(body: Json) -> set[str]:
    """Return the names of the functions that were called in the history."""
    calls = (part.get("functionCall") for part in parts_of(body))
    return {call["name"] for call in calls if call}


def is_first_turn(body: Json) -> bool:
    """Tell whether nothing of the model is in the history."""
    return all(content["role"] != "model" for content in body["contents"])


def parts_of(body: Json) -> Iterator[Json]:
    """Yield all parts of the conversation."""
    for content in body.get("contents") or ():
        yield from content["parts"]


def has_calls(body: Json) -> bool:
    """Tell whether the history has tool calls."""
    return any("functionCall" in part for part in parts_of(body))


def has_pictures(body: Json) -> bool:
    """Tell whether the body has a picture, perhaps inside of a result."""
    return any(map(_is_picture, parts_of(body)))


def shows_picture(body: Json) -> bool:
    """Tell whether the newest turn has a picture."""
    for content in reversed(body["contents"]):
        if content["role"] == "model":
            break
        if any(map(_is_picture, content["parts"])):
            return True
    return False


def narrow_schemas(body: Json) -> Body:
    """Write all schemas in the subset that every version of the API takes."""
    body = offer_tools(body, [*map(_narrow, read_tools(body))])
    config = body.get("generationConfig")
    if isinstance(config, dict) and "responseJsonSchema" in config:
        schema = config["responseJsonSchema"]
        rest = {k: v for k, v in config.items() if k != "responseJsonSchema"}
        body["generationConfig"] = {**rest, "responseSchema": narrow_schema(schema)}
    return body


def calls_as_text(body: Json) -> Body:
    """Move calls and results into the user's words, marked as records.

    In the model's words they would be an example to imitate.
    """
    if not has_calls(body):
        return dict(body)
    out: list[dict[str, Any]] = []
    calls: list[Json] = []  # of the newest step; their results come next
    for content in body["contents"]:
        asked = [p["functionCall"] for p in content["parts"] if "functionCall" in p]
        calls = asked or calls
        said = [part for part in content["parts"] if "functionCall" not in part]
        _say(out, content["role"], _records(said, iter(calls)))
    system = body.get("systemInstruction", {}).get("parts", [])
    instruction = {"parts": [*system, {"text": ABOUT_RECORDS}]}
    return {**body, "systemInstruction": instruction, "contents": out}


def pictures_as_text(body: Json) -> Body:
    """Replace each picture with a sentence."""
    return _with_parts(body, _without_picture)


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


def _is_picture(part: Json) -> bool:
    return "inlineData" in part or "parts" in part.get("functionResponse", {})


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


def _without_picture(part: Part) -> Part:
    if "inlineData" in part:
        return {"text": NO_PICTURE}
    result = part.get("functionResponse")
    if result is None or "parts" not in result:
        return part
    rest = {key: value for key, value in result.items() if key != "parts"}
    response = {**result["response"], "pictures": NO_PICTURE}
    return {"functionResponse": {**rest, "response": response}}


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


def _records(parts: list[Part], calls: Iterator[Json]) -> list[Part]:
    """Return parts with the results as text, each with the call that it answers."""
    out: list[Part] = []
    for part in parts:
        if result := part.get("functionResponse"):
            call = next(calls, {})
            arguments = write_json(call.get("args", {})).decode()
            said = "\n".join(map(str, result["response"].values()))
            record = call_record(result["name"], arguments, said)
            out += [{"text": record}, *result.get("parts", ())]
        elif set(part) - {"thoughtSignature"}:
            out.append(part)
    return out


def _say(contents: list[dict[str, Any]], role: str, parts: list[Part]) -> None:
    if parts and contents and contents[-1]["role"] == role:
        contents[-1]["parts"] += parts
    elif parts:
        contents.append({"role": role, "parts": [*parts]})
