"""Gemini: encoding the request, `POST models/MODEL:streamGenerateContent?alt=sse`.

Provider data, whose forms `answer.py` describes, come from a client and may be forged
or damaged: values of a wrong type are dropped.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Json,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    ToolUse,
    calls_of,
    data_of,
)
from byok.core.errors import BadRequest
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.gemini.answer import OPAQUE
from byok.dialects.model_facts import nearest_effort, unsent_effort
from byok.dialects.safe_names import (
    NO_OUTPUT,
    NOT_CHECKED,
    move_images,
    read_arguments,
    spell_name,
    wants_signatures,
    without_none,
)
from byok.dialects.schemas import write_parameters

_NO_WORDS = "(no words)"
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]+\Z")
_EXTRA_FIELDS = {"thoughtSignature", "thought"}  # of a part, beside its kind
_MODES = {ToolUse.NONE: "NONE", ToolUse.REQUIRED: "ANY"}
_FOLDERS = ("models/", "tunedModels/")
_DOT_SEGMENTS = frozenset({".", ".."})  # clients and servers resolve them
_SAFE_CHARS = "/:@,=+~"
_MAX_STOPS = 5  # API reference, GenerationConfig.stopSequences
_MAX_NAME_CHARS = 64
_FEWER_STOPS = "Gemini takes five stop texts at most, so the others were left out."
_THINKING_MODEL = re.compile(r"gemini-(?:2\.5|[3-9]|\d\d|\w+-latest|latest)")
_BUDGET_MODEL = re.compile(r"gemini-2\.5")
# Levels of models whose facts name none.
_LEVELS = ("low", "high")
_FLASH_LEVELS = ("minimal", "low", "medium", "high")
_ALL_LEVELS = ("minimal", "low", "medium", "high", "xhigh")


class _Range(Struct, frozen=True):
    """Accepted budgets in tokens; with `can_be_off`, 0 is accepted as well."""

    min: int
    max: int
    can_be_off: bool = True


# Ranges by a part of the model's name; the first match counts. Source: Gemini API,
# Thinking.
_RANGES = {
    "flash-lite": _Range(512, 24_576),
    "flash": _Range(1, 24_576),
    "": _Range(128, 32_768, can_be_off=False),
}
_BUDGETS = {
    "none": 0,
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 32_768,
}


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode a conversation; the path names the model."""
    contents = GeminiContents(target)
    contents.add(chat.messages)
    sampling, choice, answer = chat.sampling, chat.tool_choice, chat.json_answer
    thinking, unsent = thinking_config(chat, target)
    config = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": [*sampling.stop[:_MAX_STOPS]] or None,
        "responseMimeType": "application/json" if answer else None,
        "responseJsonSchema": answer.schema if answer else None,
        "thinkingConfig": thinking or None,
    }
    if sampling.stop[_MAX_STOPS:]:
        unsent += (_FEWER_STOPS,)
    body: dict[str, Any] = contents.fields()
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "parametersJsonSchema": write_parameters(tool.parameters),
        }
        for tool in chat.tools
    ]
    if tools:
        body["tools"] = [{"functionDeclarations": tools}]
    if tools and choice.use in _MODES:  # the default is AUTO
        calling: dict[str, Any] = {"mode": _MODES[choice.use]}
        if choice.name and choice.use is ToolUse.REQUIRED:
            calling["allowedFunctionNames"] = [choice.name]
        body["toolConfig"] = {"functionCallingConfig": calling}
    if config := without_none(config):
        body["generationConfig"] = config
    return UpstreamRequest(
        f"{_model_path(target.model)}:streamGenerateContent?alt=sse",
        body,
        unsent=unsent,
    )


def _model_path(model: str) -> str:
    """Return the path of a model, whose name may have folders.

    Raises:
        BadRequest: the name would leave the path of the API.
    """
    path = model if model.startswith(_FOLDERS) else f"models/{model}"
    if not _DOT_SEGMENTS.isdisjoint(path.split("/")):
        name = model[:_MAX_NAME_CHARS]
        raise BadRequest(
            f'the model\'s name "{name}" has "." or ".." as a folder.',
            hint="Check the model's name (byok models).",
        )
    return quote(path, safe=_SAFE_CHARS)


def spell_tool(name: str, again: int) -> str:
    """Return a name that begins with a letter or _, as the API requires."""
    spelled = spell_name(name, again)
    is_valid = re.match("[A-Za-z_]", spelled)
    return spelled if is_valid else f"_{spelled}"[:_MAX_NAME_CHARS]


class GeminiContents:
    """The `contents` and the `systemInstruction` of one request.

    Users and tools speak as `user`, the model as `model`, and the roles alternate: the
    results of a step are one content directly after its calls, in their order.
    """

    def __init__(self, target: Target) -> None:
        # Gemini 3 needs signatures, and accepts pictures inside of results.
        self._is_signed = wants_signatures(target.model)
        self._contents: list[dict[str, Any]] = []
        self._system: list[dict[str, Any]] = []
        self._ids: dict[str, str] = {}  # that the model gave, by those of the client
        self._call_ids: list[str] = []  # of the calls whose results come next
        self._results: list[ToolResult] = []

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages, the oldest first."""
        for message in messages if self._is_signed else move_images(messages):
            if message.role is not Role.TOOL:
                self._end_step()
            match message.role:
                case Role.SYSTEM:
                    self._system += self._words(message.parts)
                case Role.ASSISTANT:
                    calls = calls_of(message)
                    self._call_ids = [call.id for call in calls]
                    self._put("model", [*self.model_parts(message.parts)])
                case Role.USER:
                    words = [*self._words(message.parts)]
                    self._put("user", words or [{"text": _NO_WORDS}])
                case Role.TOOL:
                    parts = message.parts
                    self._results += (p for p in parts if isinstance(p, ToolResult))
        self._end_step()

    def fields(self) -> dict[str, Any]:
        """Return the fields of the body."""
        system = {"systemInstruction": {"parts": self._system}} if self._system else {}
        return {**system, "contents": self._contents}

    def _put(self, role: str, parts: list[dict[str, Any]]) -> None:
        if parts and self._contents and self._contents[-1]["role"] == role:
            self._contents[-1]["parts"] += parts
        elif parts:
            self._contents.append({"role": role, "parts": parts})

    def _end_step(self) -> None:
        """Add the results of a step in the order of its calls, which may lack ids."""
        order = {call_id: n for n, call_id in enumerate(self._call_ids)}
        self._results.sort(key=lambda result: order.get(result.call_id, len(order)))
        self._put("user", [*map(self._response, self._results)])
        self._results = []

    def _words(self, parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        for part in parts:
            if isinstance(part, TextPart) and part.text:
                yield {"text": part.text}
            elif isinstance(part, ImagePart):
                yield _picture(part)

    def _response(self, result: ToolResult) -> dict[str, Any]:
        call_id = self._ids.get(result.call_id)
        response: dict[str, Any] = {
            **({"id": call_id} if call_id else {}),
            "name": result.name,
            "response": {
                "error" if result.is_error else "output": result.content or NO_OUTPUT
            },
        }
        if result.images:
            response["parts"] = [*map(_picture, result.images)]
        return {"functionResponse": response}

    def model_parts(self, parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        """Yield the parts of one turn; a signature joins the text that it signs."""
        signature: Json = {}  # of the first `chars` characters of the next part
        chars, has_call = 0, False
        for part in parts:
            if signature:
                text = part.text if isinstance(part, TextPart) else ""
                yield {"text": text[:chars], **signature}
                signature = {}
                if text:
                    part = TextPart(text[chars:])
            match part:
                case TextPart(text=text) if text:
                    yield {"text": text}
                case ToolCall():
                    yield self._call(part, is_first=not has_call)
                    has_call = True
                case ThinkingPart():
                    data = data_of(part)
                    count, is_signed = data.get("chars"), bool(_signature(data))
                    chars = max(count, 0) if type(count) is int and is_signed else 0
                    signature = _signature(data) if chars else {}
                    yield from () if chars else _thought(part.text, data)
                case _:
                    pass  # parts of a user
        if signature:
            yield {"text": "", **signature}

    def _call(self, call: ToolCall, *, is_first: bool) -> dict[str, Any]:
        data = data_of(call)
        signature = _signature(data)
        if not signature and is_first and self._is_signed:
            signature = {"thoughtSignature": NOT_CHECKED}
        body = {"name": call.name, "args": read_arguments(call.arguments)}
        if isinstance(call_id := data.get("id"), str) and call_id:
            self._ids[call.id] = call_id
            body = {"id": call_id, **body}
        return {"functionCall": body, **signature}


def _signature(data: Json) -> dict[str, Any]:
    signature = data.get("thoughtSignature")
    is_valid = isinstance(signature, str) and _BASE64.match(signature)
    return {"thoughtSignature": signature} if is_valid else {}


def _thought(text: str, data: Json) -> Iterator[dict[str, Any]]:
    """Yield the part of one block of reasoning.

    A summary without a signature is not sent: it is for people, not for the model.
    """
    part = data.get("part")
    if isinstance(part, dict):
        thought = {"thought": True} if part.get("thought") is True else {}
        kinds = part.keys() - _EXTRA_FIELDS
        is_opaque = len(kinds) == 1 and kinds <= set(OPAQUE)
        if is_opaque and all(isinstance(part[kind], dict) for kind in kinds):
            yield {kind: part[kind] for kind in kinds} | thought | _signature(part)
    elif signature := _signature(data):
        is_thought = data.get("thought") is True
        yield (
            {"text": text, "thought": True, **signature}
            if is_thought
            else {"text": "", **signature}
        )


def _picture(image: ImagePart) -> dict[str, Any]:
    return {"inlineData": {"mimeType": image.media_type, "data": image.data}}


def thinking_config(
    chat: ChatRequest, target: Target
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the thinkingConfig, which may be empty, and notices for the user.

    It has a level for Gemini 3 and later, a budget for Gemini 2.5. Summaries of the
    thoughts are requested unless the answer is not shown (`silent`).
    """
    effort, model = chat.sampling.effort, target.model.lower()
    can_think = target.facts.thinking
    if can_think is None:
        can_think = bool(_THINKING_MODEL.search(model))
    if not can_think:
        is_lost = effort not in ("", "none")
        return {}, ((unsent_effort(effort),) if is_lost else ())
    config: dict[str, Any] = {} if chat.silent else {"includeThoughts": True}
    if _BUDGET_MODEL.search(model):
        budget = _budget(effort, model)
        if budget is not None:
            config["thinkingBudget"] = budget
        if budget == 0:
            config.pop("includeThoughts", None)
    else:
        usual = _FLASH_LEVELS if "flash" in model else _LEVELS
        levels = [e for e in target.facts.efforts if e in _ALL_LEVELS] or usual
        if level := nearest_effort(effort, levels):
            config["thinkingLevel"] = level.upper()
    return config, ()


def _budget(effort: str, model: str) -> int | None:
    if effort not in _BUDGETS:
        return None
    limits = next(limits for name, limits in _RANGES.items() if name in model)
    if effort == "none" and limits.can_be_off:
        return 0
    return min(max(_BUDGETS[effort], limits.min), limits.max)
