"""OpenAI's Responses: its rules for bodies, and a server with models that reason."""

import re
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from tests.fakes.strict import is_object, matches
from tests.fakes.upstream import FakeUpstream, Script, answer, event, play

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_PICTURE = re.compile(
    r"(?:data:image/(?:png|jpeg|gif|webp);base64,.+|https?://.+)\Z", re.S
)
_CALL_ID = re.compile(r".{1,64}\Z")
_FILE = re.compile(r"data:(?!audio/|video/)[\w.+-]+/[\w.+-]+;base64,.+\Z", re.DOTALL)
_BODY_KEYS = """
    background context_management conversation include input instructions
    max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls
    previous_response_id prompt prompt_cache_key prompt_cache_retention
    prompt_cache_options reasoning safety_identifier service_tier store stream
    stream_options temperature text tool_choice tools top_logprobs top_p truncation user
"""
_INCLUDABLE = """
    reasoning.encrypted_content message.output_text.logprobs file_search_call.results
    web_search_call.results web_search_call.action.sources
    message.input_image.image_url computer_call_output.output.image_url
    code_interpreter_call.outputs
"""
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", None)
_ITEM_KEYS = {
    "message": "type role content id status phase",
    "function_call": "type call_id name arguments id status namespace",
    "function_call_output": "type call_id output id status",
    "reasoning": "type id summary content encrypted_content format",
    "item_reference": "type id",
}
_OTHER_ITEMS = ("_call", "_output", "_request", "_response", "compaction")
_ROLES = ("user", "assistant", "system", "developer")
_MOST_TOOLS = 128


def broken_rules(body: Any) -> list[str]:
    """Return every rule that a request body breaks; none of a good one."""
    if not isinstance(body, dict):
        return ["the body is no object"]
    return [*_envelope(body), *_tools(body), *_choice(body), *_input(body)]


def _envelope(body: dict[str, Any]) -> Iterator[str]:
    for key in sorted(body.keys() - set(_BODY_KEYS.split())):
        yield f"Unknown parameter: '{key}'."
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "Missing required parameter: 'model'."
    yield from _numbers(body)
    if unknown := set(body.get("include") or ()) - set(_INCLUDABLE.split()):
        yield f"Invalid value: 'include' has {unknown}"
    reasoning = body.get("reasoning") or {}
    if reasoning.get("effort") not in _EFFORTS:
        yield "Invalid value: 'reasoning.effort'"
    if reasoning.get("summary") not in ("auto", "concise", "detailed", None):
        yield "Invalid value: 'reasoning.summary'"
    if len(str(body.get("prompt_cache_key") or "")) > 64:
        yield "Invalid 'prompt_cache_key': string too long."
    yield from _format((body.get("text") or {}).get("format") or {})


def _numbers(body: dict[str, Any]) -> Iterator[str]:
    for key, most in (("temperature", 2), ("top_p", 1)):
        if (value := body.get(key)) is not None and not 0 <= value <= most:
            yield f"Invalid '{key}': {value}"
    if (cap := body.get("max_output_tokens")) is not None and cap < 16:
        yield "Invalid 'max_output_tokens': integer below minimum value."


def _format(text_format: dict[str, Any]) -> Iterator[str]:
    if text_format.get("type") == "json_schema":
        if not matches(_NAME, text_format.get("name")):
            yield f"Invalid 'text.format.name': {text_format.get('name')!r}"
        if not isinstance(text_format.get("schema"), dict):
            yield "Missing required parameter: 'text.format.schema'."


def _tools(body: dict[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        return
    functions = [tool for tool in body["tools"] if tool.get("type") == "function"]
    names = [tool.get("name") for tool in functions]
    if len(set(names)) < len(names):
        yield "two tools share a name"
    if len(functions) > _MOST_TOOLS:
        yield f"Invalid 'tools': array too long, at most {_MOST_TOOLS} tools."
    for tool in functions:
        keys = {"type", "name", "description", "parameters", "strict", "defer_loading"}
        if tool.keys() - keys or not matches(_NAME, tool.get("name")):
            yield f"tool {str(tool)[:80]}"
        parameters = tool.get("parameters")
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            yield f"parameters of {tool.get('name')!r} are no object schema"


def _choice(body: dict[str, Any]) -> Iterator[str]:
    tools = body.get("tools") or []
    for key in ("tool_choice", "parallel_tool_calls"):
        if not tools and body.get(key) not in (None, "auto", "none", True):
            yield f"{key} without tools"
    choice = body.get("tool_choice")
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        yield f"tool_choice {choice!r}"
    named = choice.get("name") if isinstance(choice, dict) else None
    if named and named not in [tool.get("name") for tool in tools]:
        yield f"tool_choice names {named!r}, which is not offered"


def _input(body: dict[str, Any]) -> Iterator[str]:
    items = body.get("input")
    if isinstance(items, str):
        return
    is_continued = body.get("previous_response_id") or body.get("conversation")
    if not isinstance(items, list) or not (items or is_continued):
        yield "Missing required parameter: 'input'."
        return
    for item in items:
        yield from _item(item)
    yield from _reasoning_order(items, is_stored=body.get("store") is not False)
    if not is_continued:
        yield from _pairing(items)


def _kind(item: dict[str, Any]) -> str:
    return str(item.get("type") or ("message" if item.get("role") else ""))


def _item(item: dict[str, Any]) -> Iterator[str]:
    kind = _kind(item)
    if kind not in _ITEM_KEYS:
        if not kind.endswith(_OTHER_ITEMS):
            yield f"Invalid value: '{kind}'"
        return
    if unknown := item.keys() - set(_ITEM_KEYS[kind].split()):
        yield f"Unknown parameter: 'input.{min(unknown)}' of a {kind}"
    if len(str(item.get("id") or "")) > 64:
        yield "Invalid 'input.id': string too long."
    if kind.startswith("function") and not matches(_CALL_ID, item.get("call_id")):
        yield f"Invalid 'input.call_id': {item.get('call_id')!r}"
    yield from _ITEM_RULES[kind](item)


def _call(item: dict[str, Any]) -> Iterator[str]:
    if not matches(_NAME, item.get("name")) or not is_object(item.get("arguments")):
        yield f"function_call {str(item)[:90]}"


def _output(item: dict[str, Any]) -> Iterator[str]:
    yield from _content(item.get("output"), "user")


def _reasoning(item: dict[str, Any]) -> Iterator[str]:
    if not _are_parts(item.get("summary"), "summary_text"):
        yield "Missing required parameter: 'input.summary'."
    if not isinstance(item.get("encrypted_content"), str | None):
        yield "Invalid type for 'input.encrypted_content'"


def _reference(item: dict[str, Any]) -> Iterator[str]:
    if not item.get("id"):
        yield "Missing required parameter: 'input.id'."


def _message(item: dict[str, Any]) -> Iterator[str]:
    role = item.get("role")
    if role not in _ROLES:
        yield f"Invalid value: role {role!r}"
    if item.get("phase") not in (None, "commentary", "final_answer"):
        yield f"Invalid value: phase {item.get('phase')!r}"
    if item.get("phase") and role != "assistant":
        yield "a phase of a message that is not the assistant's"
    yield from _content(item.get("content"), str(role))


def _content(content: Any, role: str) -> Iterator[str]:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"{role} content is {str(content)[:40]}"
        return
    for part in content:
        match part:
            case {"type": "output_text", "text": str()} | {"type": "refusal"}:
                fits = role == "assistant"
            case {"type": "input_text", "text": str()}:
                fits = role != "assistant"
            case {"type": "input_image"}:
                fits = role == "user" and (
                    "file_id" in part or matches(_PICTURE, part.get("image_url"))
                )
            case {"type": "input_file"}:
                data = part.get("file_data")
                fits = role == "user" and (data is None or matches(_FILE, data))
            case _:
                fits = False
        if not fits:
            yield f"Invalid value: {role} part {str(part)[:60]}"


def _reasoning_order(items: list[dict[str, Any]], *, is_stored: bool) -> Iterator[str]:
    for place, item in enumerate(items):
        if _kind(item) != "reasoning":
            continue
        if not is_stored and not item.get("encrypted_content"):
            yield (
                f"Item with id '{item.get('id')}' not found. Items are not persisted "
                "when `store` is set to false."
            )
        after = items[place + 1] if place + 1 < len(items) else {}
        is_own = after.get("role") == "assistant" or _kind(after).endswith("_call")
        if not is_own and _kind(after) != "reasoning":
            yield (
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its "
                "required following item."
            )


def _pairing(items: list[dict[str, Any]]) -> Iterator[str]:
    open_ids: list[Any] = []
    seen: set[Any] = set()
    for item in items:
        call_id = item.get("call_id")
        if _kind(item) == "function_call":
            if call_id in seen:
                yield f"Duplicate function call {call_id}."
            seen.add(call_id)
            open_ids.append(call_id)
        elif _kind(item) == "function_call_output":
            if call_id not in open_ids:
                yield f"No tool call found for function call output with {call_id}."
            else:
                open_ids.remove(call_id)
    if open_ids:
        yield f"No tool output found for function call {open_ids[0]}."


def _are_parts(parts: Any, kind: str) -> bool:
    return isinstance(parts, list) and all(
        isinstance(part, dict) and part.get("type") == kind for part in parts
    )


_ITEM_RULES = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _output,
    "reasoning": _reasoning,
    "item_reference": _reference,
}

ONLY_RESPONSES = (
    "Function tools with reasoning_effort are not supported for {model} in "
    "/v1/chat/completions. To use function tools, use /v1/responses or set "
    "reasoning_effort to 'none'."
)
Item = dict[str, Any]


def text_item(text: str, **fields: Any) -> Item:
    """Write a complete message of the assistant."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part], **fields}


def call_item(name: str, arguments: str = "{}", call_id: str = "call_1") -> Item:
    """Write a complete function call."""
    call = {"call_id": call_id, "name": name, "arguments": arguments}
    return {"type": "function_call", "id": f"fc_{call_id}", **call}


def reasoning_item(sealed: str = "", *summary: str, **fields: Any) -> Item:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    own = {"encrypted_content": sealed} if sealed else {}
    return {"type": "reasoning", "id": "rs_1", "summary": parts, **own, **fields}


def response(*items: Item, status: str = "completed", **fields: Any) -> Item:
    return {"object": "response", "status": status, "output": list(items), **fields}


def streamed(*items: Item, status: str = "completed", **fields: Any) -> list[bytes]:
    """Stream a response as OpenAI does: each item begins, grows and ends."""
    pieces = [event({"type": "response.created", "response": {"status": "queued"}})]
    for index, item in enumerate(items):
        pieces += [event(e | {"output_index": index}) for e in _item_events(item)]
    last = {"type": f"response.{status}"}
    whole = response(*items, status=status, **fields)
    return [*pieces, event({**last, "response": whole})]


def _item_events(item: Item) -> list[Item]:
    begun = {**item, "status": "in_progress"}
    for name in ("content", "arguments", "summary", "encrypted_content"):
        begun.pop(name, None)
    deltas: list[Item] = []
    match item["type"]:
        case "message":
            text = "".join(part["text"] for part in item["content"])
            deltas = _deltas("output_text", text)
        case "function_call":
            deltas = _deltas("function_call_arguments", item["arguments"])
        case "reasoning":
            for n, part in enumerate(item["summary"]):
                more = _deltas("reasoning_summary_text", part["text"])
                deltas += [{**delta, "summary_index": n} for delta in more]
        case _:
            pass
    return [
        {"type": "response.output_item.added", "item": begun},
        *deltas,
        {"type": "response.output_item.done", "item": item},
    ]


def _deltas(kind: str, text: str) -> list[Item]:
    half = len(text) // 2
    return [
        {"type": f"response.{kind}.delta", "delta": piece}
        for piece in (text[:half], text[half:])
        if piece
    ]


class ResponsesServer(FakeUpstream):
    """Calls the first tool offered until it saw three results, then says "Done.".

    It refuses what breaks a rule, and reasoning or phases that it did not send so. Chat
    Completions takes no tools; with `has_path` unset it is the only API.
    """

    def __init__(self, *, has_path: bool = True) -> None:
        super().__init__()
        self.has_path = has_path
        self.refusals: list[str] = []
        self.issued: list[Item] = []  # reasoning, as it must come back
        self.phases: dict[str, str] = {}  # by the text of a message

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.paths.append(request.match_info["path"])
        if request.match_info["path"] == "chat/completions":
            return await self._complete(request, body)
        if not self.has_path:
            return web.json_response({"detail": "Not Found"}, status=404)
        if reasons := [*broken_rules(body), *self._unfaithful(body)]:
            self.refusals += reasons
            return _refusal("; ".join(reasons))
        return await play(request, Script(self._answer(body)))

    async def _complete(self, request: web.Request, body: Any) -> web.StreamResponse:
        if self.has_path and body.get("tools"):
            return _refusal(ONLY_RESPONSES.format(model=body["model"]))
        return await play(request, Script(answer("By chat.")))

    def _answer(self, body: Any) -> list[bytes]:
        results = (i for i in body["input"] if "output" in i)
        done = len([*results])
        if done >= 3 or not body.get("tools"):
            self.phases["Done."] = "final_answer"
            return streamed(text_item("Done.", phase="final_answer"))
        said = f"Step {done + 1} of 3."
        self.phases[said] = "commentary"
        thought = reasoning_item(f"gAAA{done}+é==", f"Plan {done}.", "Go on.")
        self.issued.append({k: v for k, v in thought.items() if k != "id"})
        return streamed(
            thought,
            text_item(said, phase="commentary"),
            call_item(body["tools"][0]["name"], call_id=f"call_{done}"),
        )

    def _unfaithful(self, body: Any) -> list[str]:
        items = body["input"] if isinstance(body.get("input"), list) else []
        reasons = [
            f"The encrypted content of {item} could not be verified."
            for item in items
            if item.get("type") == "reasoning"
            and {k: v for k, v in item.items() if k != "id"} not in self.issued
        ]
        for item in items:
            wanted = self.phases.get(str(item.get("content")))
            if item.get("role") == "assistant" and item.get("phase") != wanted:
                reasons.append(f"phase of {item}, not {wanted}")
        return reasons


def _refusal(message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error"}
    return web.json_response({"error": error}, status=400)
