"""Gemini's API as a judge of bodies, to the letter, and as a server that signs calls.

Rules of the Gemini API reference, and texts of refusals that its users report.
"""

import base64
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from aiohttp import web

from byok.dialects.safe_names import NOT_CHECKED, wants_signatures
from tests.fakes.schemas import geminis_words
from tests.fakes.strict import is_base64
from tests.fakes.upstream import LoopbackServer

Body = dict[str, Any]

_KEYS = """
    contents systemInstruction tools toolConfig generationConfig safetySettings
    cachedContent labels model
"""
_DATA = """
    text inlineData fileData functionCall functionResponse executableCode
    codeExecutionResult toolCall toolResponse
"""
_BESIDE = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution"}
_CONFIG = """
    maxOutputTokens temperature topP topK stopSequences responseMimeType
    responseSchema responseJsonSchema thinkingConfig candidateCount seed
    responseModalities presencePenalty frequencyPenalty
"""
_LEVELS = {"MINIMAL", "LOW", "MEDIUM", "HIGH"}
_TOOLS = {"functionDeclarations", "googleSearch", "codeExecution", "urlContext",
          "fileSearch"}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}\Z")
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")


def broken_rules(body: Any, model: str) -> list[str]:
    """Return every rule that a request to a model breaks; none of a good one."""
    if not isinstance(body, dict):
        return ["the body is no object"]
    body = _without_null(body)
    return [
        *(f"Unknown name {key!r}" for key in sorted(body.keys() - set(_KEYS.split()))),
        *_system(body.get("systemInstruction")),
        *_tools(body),
        *_config(body.get("generationConfig", {}), model.lower()),
        *_conversation(body.get("contents"), model),
    ]


def _without_null(value: Any) -> Any:
    """Drop null fields, which JSON of protocol buffers may have."""
    if isinstance(value, dict):
        return {k: _without_null(v) for k, v in value.items() if v is not None}
    return value


def _system(content: Any) -> Iterator[str]:
    if content is not None and not all("text" in p for p in content["parts"]):
        yield "systemInstruction has more than text"


def _tools(body: Body) -> Iterator[str]:
    tools = body.get("tools", [])
    tools = tools if isinstance(tools, list) else [tools]
    functions = [f for tool in tools for f in tool.get("functionDeclarations", ())]
    for tool in tools:
        if tool.keys() - _TOOLS:
            yield f"Unknown name {tool.keys() - _TOOLS} at 'tools'"
    names = [function.get("name", "") for function in functions]
    if len(set(names)) < len(names):
        yield "Duplicate function declaration found"
    if len(names) > 512:
        yield f"at most 512 function declarations are supported, got {len(names)}"
    for place, function in enumerate(functions):
        for reason in _function(function):
            yield f"tools[0].function_declarations[{place}]: {reason}"
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    allowed = config.get("allowedFunctionNames", [])
    if config.get("mode", "AUTO") not in ("AUTO", "ANY", "NONE", "VALIDATED"):
        yield "Invalid value at 'tool_config'"
    if allowed and (config["mode"] not in ("ANY", "VALIDATED")):
        yield "allowed_function_names need the mode ANY"
    if set(allowed) - set(names):
        yield "allowed_function_names should be a subset of the declarations"


def _function(function: Body) -> Iterator[str]:
    known = {"name", "description", "parameters", "parametersJsonSchema"}
    if unknown := function.keys() - known:
        yield f"Unknown name {unknown}"
    if not _NAME.match(function.get("name", "")):
        yield f"Invalid function name {function.get('name')!r}"
    schema, free = function.get("parameters"), function.get("parametersJsonSchema")
    if schema is not None and free is not None:
        yield "parameters and parameters_json_schema are exclusive"
    if schema:
        yield from geminis_words(schema)
    if free is not None and (not isinstance(free, dict) or free["type"] != "object"):
        yield "parameters_json_schema: only objects are supported"


def _config(config: Body, model: str) -> Iterator[str]:
    if unknown := config.keys() - set(_CONFIG.split()):
        yield f"Unknown name {unknown} at 'generation_config'"
    if not 0 <= config.get("temperature", 1) <= 2:
        yield (
            "Unable to submit request because it has a temperature value of "
            f"{config['temperature']} but the supported range is from 0 to 2.0"
        )
    if not 1 <= config.get("maxOutputTokens", 1) <= 65_536:
        yield (
            "Unable to submit request because it has a maxOutputTokens value of "
            f"{config['maxOutputTokens']} but the supported range is from 1 "
            "(inclusive) to 65537 (exclusive)."
        )
    if len(config.get("stopSequences", ())) > 5:
        yield "stop_sequences: at most 5"
    has_schema = "responseSchema" in config or "responseJsonSchema" in config
    if has_schema and config.get("responseMimeType") != "application/json":
        yield "response_schema needs response_mime_type"
    if thinking := config.get("thinkingConfig"):
        yield from _thinking(thinking, model)


def _thinking(thinking: Body, model: str) -> Iterator[str]:
    budget, level = thinking.get("thinkingBudget"), thinking.get("thinkingLevel")
    if thinking.keys() - {"thinkingBudget", "thinkingLevel", "includeThoughts"}:
        yield "Unknown name at 'generation_config.thinking_config'"
    if "gemini-2.0" in model:
        yield "thinking_config is not supported."
    if level is not None and "gemini-2.5" in model:
        yield "Thinking level is not supported for this model."
    if level is not None and level.upper() not in _LEVELS:
        yield f"Invalid value at 'thinking_level': {level}"
    if level == "MEDIUM" and "gemini-3-pro" in model:
        yield "Thinking level MEDIUM is not supported for this model."
    if level is not None and budget is not None:
        yield "You can only set one of thinking budget and thinking level."
    if budget == 0 and "2.5-pro" in model:
        yield "Budget 0 is invalid. This model only works in thinking mode."
    if budget is not None and not -1 <= budget <= 32_768:
        yield f"The thinking budget ({budget}) is invalid."


def _conversation(contents: Any, model: str) -> Iterator[str]:
    if not isinstance(contents, list) or not contents:
        yield "contents is not specified"
        return
    for content in contents:
        yield from _content(content)
    if contents[-1].get("role", "user") != "user":
        yield "Please ensure that the last content is of the user."
    if _of(contents[0], "functionCall"):
        yield "a function call turn comes immediately after a user turn"
    if _of(contents[0], "functionResponse"):
        yield "a function response turn comes immediately after a function call turn"
    for one, other in pairwise(contents):
        yield from _pairing(_of(one, "functionCall"), _of(other, "functionResponse"))
        if one["role"] == "model" and other["role"] == "model":
            yield "two contents of the model in a row"
    if wants_signatures(model):
        yield from _signatures(contents)


def _content(content: Body) -> Iterator[str]:
    role = content.get("role", "user")
    if role not in ("user", "model"):
        yield "Please use a valid role: user, model."
    if not content.get("parts"):
        yield "contents.parts must not be empty."
    for part in content["parts"]:
        yield from _part(part, role)


def _of(content: Body, kind: str) -> list[Body]:
    return [part[kind] for part in content["parts"] if kind in part]


def _part(part: Body, role: str) -> Iterator[str]:
    data = set(_DATA.split())
    kinds = part.keys() & data
    if len(kinds) != 1 or part.keys() - data - _BESIDE:
        yield f"a part with {sorted(part)}"
    if part.get("text") == "" and "thoughtSignature" not in part:
        yield "Unable to submit request because it must have a text parameter"
    if kinds & {"functionCall", "executableCode"} and role != "model":
        yield "a call of the user"
    if "functionResponse" in part and role == "model":
        yield "a result of the model"
    signature = part.get("thoughtSignature", "")
    if not re.fullmatch(r"[A-Za-z0-9+/_=-]*", signature):
        yield "Base64 decoding failed for 'thought_signature'"
    inner = part.get("functionResponse", {}).get("parts", ())
    for picture in (part, *inner):
        if data := picture.get("inlineData"):
            yield from _picture(data)


def _picture(data: Body) -> Iterator[str]:
    if data["mimeType"] not in (*_PICTURES, "application/pdf"):
        yield f"Unsupported MIME type: {data['mimeType']}"
    # The word stands in place of a recorded picture.
    if data["data"] != "ELIDED_BASE64" and not is_base64(data["data"]):
        yield "Base64 decoding failed for 'inline_data'"


def _pairing(calls: list[Body], results: list[Body]) -> Iterator[str]:
    if len(calls) != len(results):
        yield (
            "Please ensure that the number of function response parts is equal to the "
            "number of function call parts of the function call turn."
        )
        return
    for call, result in zip(calls, results, strict=True):
        if call["name"] != result["name"]:
            yield "function response name and function call name differ"
        if call.get("id") != result.get("id"):
            yield "the ids of function call and function response differ"
        if not isinstance(call.get("args", {}), dict):
            yield "args is no object"
        if not isinstance(result.get("response"), dict):
            yield "response is no object"


def _signatures(contents: list[Body]) -> Iterator[str]:
    """Check the steps since the user last spoke."""
    spoken = [
        n for n, c in enumerate(contents) if c["role"] == "user" and _of(c, "text")
    ]
    for place, content in enumerate(contents[spoken[-1] if spoken else 0 :]):
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            yield (
                "Function call is missing a thought_signature in functionCall parts: "
                f"function call `{calls[0]['functionCall']['name']}`, position {place}."
            )


class GeminiServer(LoopbackServer):
    """Calls the first tool `steps` times in a turn, then says "Done."; streams.

    It refuses what the judge refuses, and signatures that it did not give to that
    model. `calls` is how many calls a step has; with `ids` each has an id.
    """

    path = "/v1beta"

    def __init__(self, steps: int = 1, calls: int = 1, *, ids: bool = True) -> None:
        self.steps = steps
        self.calls = calls
        self.ids = ids
        self.requests: list[tuple[str, Body]] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[str] = []
        self.issued: set[tuple[str, str]] = set()
        self.bypassed = 0  # calls that came back without a signature
        self.lost: list[Body] = []  # calls of its own among them
        self._signatures: dict[tuple[str, int], str] = {}  # by model and argument

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1beta/models/{call:.+}", self._generate),
            web.get("/v1beta/models", self._list),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"models": []})

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        model, _, method = request.match_info["call"].partition(":")
        body = await request.json()
        self.requests.append((model, body))
        self.headers.append(dict(request.headers))
        assert (method, request.query.get("alt")) == ("streamGenerateContent", "sse")
        if reasons := [*broken_rules(body, model), *self._forged(body, model)]:
            self.refusals += reasons
            status = "INVALID_ARGUMENT"
            error = {"code": 400, "message": "; ".join(reasons), "status": status}
            return web.json_response([{"error": error}], status=400)
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        for chunk in self._answer(body, model):
            raw = json.dumps(chunk, ensure_ascii=False).encode()
            await out.write(b"data: " + raw + b"\r\n\r\n")
        await out.write_eof()
        return out

    def _forged(self, body: Body, model: str) -> Iterator[str]:
        for content in body["contents"]:
            for part in content["parts"]:
                signature = part.get("thoughtSignature")
                self.bypassed += signature == NOT_CHECKED
                self._note_lost(part, model)
                known = signature in (None, NOT_CHECKED)
                if not known and (model, signature) not in self.issued:
                    yield "Corrupted thought signature."

    def _note_lost(self, part: Body, model: str) -> None:
        """Note a call of this model that came back without its signature."""
        number = part.get("functionCall", {}).get("args", {}).get("n")
        issued = self._signatures.get((model, number))
        if issued and part.get("thoughtSignature") != issued:
            self.lost.append(part)

    def _answer(self, body: Body, model: str) -> Iterator[Body]:
        declared = [f for t in body.get("tools", ()) for f in t["functionDeclarations"]]
        results = 0
        for content in reversed(body["contents"]):
            if content["role"] == "user":
                results += len(_of(content, "functionResponse"))
                if _of(content, "text"):
                    break
        yield _chunk([{"text": "**Looking**\n\n", "thought": True}])
        if declared and results < self.steps * self.calls:
            for n in range(self.calls):
                yield _chunk([self._call(declared[0]["name"], model, n)])
            yield _chunk([{"text": ""}], "STOP")
            return
        yield _chunk([{"text": "Done"}])
        yield _chunk([{"text": "."}])
        yield _chunk([{"text": "", "thoughtSignature": self._sign(model)}], "STOP")

    def _call(self, name: str, model: str, n: int) -> Body:
        call: Body = {"name": name, "args": {"n": len(self.requests) * 100 + n}}
        if self.ids:
            call["id"] = f"fc-{len(self.requests)}-{n}"
        if n:
            return {"functionCall": call}
        signature = self._sign(model)
        self._signatures[model, call["args"]["n"]] = signature
        return {"functionCall": call, "thoughtSignature": signature}

    def _sign(self, model: str) -> str:
        """Return a signature that is valid only with the model."""
        raw = f"{model} {len(self.issued)} é".encode() * 9
        signature = base64.b64encode(raw).decode()
        self.issued.add((model, signature))
        return signature


def _chunk(parts: list[Body], finish: str | None = None) -> Body:
    candidate: Body = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    counts = {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": counts}
