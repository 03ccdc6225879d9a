"""Gemini: encoding the request, `POST models/MODEL:streamGenerateContent?alt=sse`."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Json,
    JsonAnswer,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
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
)
from byok.dialects.schemas import write_parameters

# Gemini: a turn of the model, given back with what the model sent beside it.
#
# `answer.py` says what the provider data holds. It comes from a client, so it may be
# forged or damaged: what has the wrong type is left out.


_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]+\Z")
_BESIDE = {"thoughtSignature", "thought"}


class ModelTurns:
    """Encodes the turns of the model in one request.

    `ids` holds the ids that the model gave to its calls, by the ids of the client.
    """

    def __init__(self, target: Target) -> None:
        self._bypass = wants_signatures(target.model)
        self.ids: dict[str, str] = {}

    def parts_of(self, parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        """Yield the parts of one turn; a signature waits for the text that it signs."""
        waiting: Json = {}
        chars, called = 0, False
        for part in parts:
            if waiting:
                text = part.text if isinstance(part, TextPart) else ""
                yield {"text": text[:chars], **waiting}
                waiting = {}
                if text:
                    part = TextPart(text[chars:])
            match part:
                case TextPart(text=text) if text:
                    yield {"text": text}
                case ToolCall():
                    yield self._call(part, is_first=not called)
                    called = True
                case ThinkingPart():
                    own = data_of(part)
                    chars = _chars(own)
                    waiting = _signature(own) if chars else {}
                    yield from () if chars else _thought(part.text, own)
                case _:
                    pass  # a user's parts
        if waiting:
            yield {"text": "", **waiting}

    def _call(self, call: ToolCall, *, is_first: bool) -> dict[str, Any]:
        own = data_of(call)
        signature = _signature(own)
        if not signature and is_first and self._bypass:
            signature = {"thoughtSignature": NOT_CHECKED}
        body = {"name": call.name, "args": read_arguments(call.arguments)}
        if isinstance(id_ := own.get("id"), str) and id_:
            self.ids[call.id] = id_
            body = {"id": id_, **body}
        return {"functionCall": body, **signature}


def _signature(own: Json) -> dict[str, Any]:
    signature = own.get("thoughtSignature")
    is_valid = isinstance(signature, str) and _BASE64.match(signature)
    return {"thoughtSignature": signature} if is_valid else {}


def _chars(own: Json) -> int:
    """Return how many characters of the next text are signed, 0 for none of them."""
    chars = own.get("chars")
    is_valid = type(chars) is int and chars > 0 and bool(_signature(own))
    return chars if is_valid and isinstance(chars, int) else 0


def _thought(text: str, own: Json) -> Iterator[dict[str, Any]]:
    """Yield the part of one block of reasoning.

    Summaries without a signature are for people: the model does not need them.
    """
    part = own.get("part")
    if isinstance(part, dict):
        thought = {"thought": True} if part.get("thought") is True else {}
        kinds = part.keys() - _BESIDE
        is_opaque = len(kinds) == 1 and kinds <= set(OPAQUE)
        if is_opaque and all(isinstance(part[kind], dict) for kind in kinds):
            yield {kind: part[kind] for kind in kinds} | thought | _signature(part)
    elif signature := _signature(own):
        is_thought = own.get("thought") is True
        yield (
            {"text": text, "thought": True, **signature}
            if is_thought
            else {"text": "", **signature}
        )


# Gemini: the messages of a conversation as `contents` and `systemInstruction`.
#
# Users and tools speak as `user`, the model as `model`, and the roles alternate: the
# results of a step stand in one content directly after its calls, in their order.


_NO_WORDS = "(no words)"


class GeminiContents:
    """The contents of one request."""

    def __init__(self, target: Target) -> None:
        self._turns = ModelTurns(target)
        # Gemini 3, which also wants signatures, sees pictures inside of results.
        self._inside = wants_signatures(target.model)
        self._contents: list[dict[str, Any]] = []
        self._system: list[dict[str, Any]] = []
        self._asked: list[str] = []  # ids of the calls whose results come next
        self._results: list[ToolResult] = []

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages, the oldest first."""
        for message in messages if self._inside else move_images(messages):
            if message.role is not Role.TOOL:
                self._end_step()
            match message.role:
                case Role.SYSTEM:
                    self._system += self._words(message.parts)
                case Role.ASSISTANT:
                    calls = calls_of(message)
                    self._asked = [call.id for call in calls]
                    self._put("model", [*self._turns.parts_of(message.parts)])
                case Role.USER:
                    words = [*self._words(message.parts)]
                    self._put("user", words or [{"text": _NO_WORDS}])
                case Role.TOOL:
                    found = (p for p in message.parts if isinstance(p, ToolResult))
                    self._results += found
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
        """Add the results of a step in the order of its calls, which have no ids."""
        place = {call_id: n for n, call_id in enumerate(self._asked)}
        self._results.sort(key=lambda result: place.get(result.call_id, len(place)))
        self._put("user", [*map(self._response, self._results)])
        self._results = []

    def _words(self, parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        for part in parts:
            if isinstance(part, TextPart) and part.text:
                yield {"text": part.text}
            elif isinstance(part, ImagePart):
                yield _picture(part)

    def _response(self, result: ToolResult) -> dict[str, Any]:
        id_ = self._turns.ids.get(result.call_id)
        response: dict[str, Any] = {
            **({"id": id_} if id_ else {}),
            "name": result.name,
            "response": {
                "error" if result.is_error else "output": result.content or NO_OUTPUT
            },
        }
        if result.images:
            response["parts"] = [*map(_picture, result.images)]
        return {"functionResponse": response}


def _picture(image: ImagePart) -> dict[str, Any]:
    return {"inlineData": {"mimeType": image.media_type, "data": image.data}}


# Gemini's thinkingConfig: a level for Gemini 3 and later, a budget for Gemini 2.5.
#
# Source: Gemini API, Thinking (ranges of the budget, levels by model).


_THINKS = re.compile(r"gemini-(?:2\.5|[3-9]|\d\d|\w+-latest|latest)")
_BUDGET_ONLY = re.compile(r"gemini-2\.5")
# Of models whose levels nobody names.
_LEVELS = ("low", "high")
_FLASH_LEVELS = ("minimal", "low", "medium", "high")
_ALL_LEVELS = ("minimal", "low", "medium", "high", "xhigh")


class _Range(Struct, frozen=True):
    """Tokens that a model may think; `off` where 0 is accepted as well."""

    least: int
    most: int
    off: bool = True


# The first name that a model's contains counts.
_RANGES = {
    "flash-lite": _Range(512, 24_576),
    "flash": _Range(1, 24_576),
    "": _Range(128, 32_768, off=False),
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


def thinking_config(
    chat: ChatRequest, target: Target
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the thinkingConfig, which may be empty, and notices for the user.

    Summaries of the thoughts are asked for where someone sees them.
    """
    effort, model = chat.sampling.effort, target.model.lower()
    thinks = target.facts.thinking
    if thinks is None:
        thinks = bool(_THINKS.search(model))
    if not thinks:
        wanted = effort not in ("", "none")
        return {}, ((unsent_effort(effort),) if wanted else ())
    config: dict[str, Any] = {} if chat.silent else {"includeThoughts": True}
    if _BUDGET_ONLY.search(model):
        budget = _budget(effort, model)
        if budget is not None:
            config["thinkingBudget"] = budget
        if budget == 0:
            config.pop("includeThoughts", None)
    elif level := nearest_effort(effort, _levels(target)):
        config["thinkingLevel"] = level.upper()
    return config, ()


def _levels(target: Target) -> tuple[str, ...]:
    known = tuple(e for e in target.facts.efforts if e in _ALL_LEVELS)
    return known or (_FLASH_LEVELS if "flash" in target.model.lower() else _LEVELS)


def _budget(effort: str, model: str) -> int | None:
    if effort not in _BUDGETS:
        return None
    limits = next(limits for name, limits in _RANGES.items() if name in model)
    if effort == "none" and limits.off:
        return 0
    return min(max(_BUDGETS[effort], limits.least), limits.most)


_MODES = {ToolUse.NONE: "NONE", ToolUse.REQUIRED: "ANY"}
_FOLDERS = ("models/", "tunedModels/")
_STEPS = frozenset({".", ".."})  # clients and servers resolve them
_SAFE = "/:@,=+~"
_MOST_STOPS = 5  # API reference, GenerationConfig.stopSequences
_LONGEST_NAME = 64
_FEWER_STOPS = "Gemini takes five stop texts at most, so the others were left out."


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode a conversation; everything but the model is in the body."""
    contents = GeminiContents(target)
    contents.add(chat.messages)
    config, unsent = _generation_config(chat, target)
    body: dict[str, Any] = contents.fields()
    if tools := [*map(_declaration, chat.tools)]:
        body["tools"] = [{"functionDeclarations": tools}]
        body |= _tool_config(chat.tool_choice)
    if config:
        body["generationConfig"] = config
    return UpstreamRequest(
        f"{_model_path(target.model)}:streamGenerateContent?alt=sse",
        body,
        unsent=unsent,
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


def spell_tool(name: str, again: int) -> str:
    """Return a name that begins with a letter or _, as the API wants it."""
    spelled = spell_name(name, again)
    is_good = re.match("[A-Za-z_]", spelled)
    return spelled if is_good else f"_{spelled}"[:_LONGEST_NAME]


def _declaration(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": write_parameters(tool.parameters),
    }


def _tool_config(choice: ToolChoice) -> dict[str, Any]:
    """Return the field for any choice but the default, AUTO."""
    if choice.use not in _MODES:
        return {}
    config: dict[str, Any] = {"mode": _MODES[choice.use]}
    if choice.name and choice.use is ToolUse.REQUIRED:
        config["allowedFunctionNames"] = [choice.name]
    return {"toolConfig": {"functionCallingConfig": config}}


def _generation_config(
    chat: ChatRequest, target: Target
) -> tuple[dict[str, Any], tuple[str, ...]]:
    sampling = chat.sampling
    thinking, unsent = thinking_config(chat, target)
    config: dict[str, Any] = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": [*sampling.stop[:_MOST_STOPS]] or None,
        **_json_answer(chat.json_answer),
        "thinkingConfig": thinking or None,
    }
    if sampling.stop[_MOST_STOPS:]:
        unsent += (_FEWER_STOPS,)
    return {key: value for key, value in config.items() if value is not None}, unsent


def _json_answer(wanted: JsonAnswer | None) -> dict[str, Any]:
    if wanted is None:
        return {}
    schema = {} if wanted.schema is None else {"responseJsonSchema": wanted.schema}
    return {"responseMimeType": "application/json", **schema}
