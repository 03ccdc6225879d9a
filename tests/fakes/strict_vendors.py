"""What each vendor refuses in a chat/completions body, and servers that do so.

Reasoning is checked to the letter: what a server said must come back in the form that
the vendor wants.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, TypeAlias

from aiohttp import web

from tests.fakes.ollama_server import OllamaServer, call_line, text_line
from tests.fakes.responses_server import (
    ResponsesServer,
    call_item,
    reasoning_item,
    streamed,
    text_item,
)
from tests.fakes.strict import broken_rules
from tests.fakes.upstream import DONE, FakeUpstream, Script, delta, play

Body: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Body], Iterator[str]]
# What byok keeps to although some vendors accept more.
_OWN = (
    "two assistant",
    "two user",
    "the conversation",
    "the last message",
    "image_url",
)


class Speech(StrEnum):
    """The form in which an upstream reasons."""

    NONE = ""
    FIELD = "reasoning_content"
    DETAILS = "reasoning_details"
    SEALED = "encrypted reasoning_details"
    SIGNATURE = "extra_content"
    TAGS = "content"
    PARTS = "parts of the content"


@dataclass(frozen=True)
class VendorRules:
    """What one vendor takes and refuses.

    Attributes:
        model: a name of such a model.
        keys: further fields of the body, `refused` those that are refused.
        spoken: further fields of messages.
        rules: further rules for a body.
        speech: the form in which it reasons; `tool_turns` and `plain_turns` are the
            turns whose reasoning must come back, `empty` accepts "" instead.
    """

    model: str
    keys: str = ""
    refused: str = ""
    spoken: str = ""
    rules: tuple[Rule, ...] = ()
    speech: Speech = Speech.NONE
    tool_turns: bool = False
    plain_turns: bool = False
    empty: bool = False


def _tools_need_no_effort(body: Body) -> Iterator[str]:
    if body.get("tools") and body.get("reasoning_effort") != "none":
        yield (
            "Function tools with reasoning_effort are not supported for this model in "
            "/v1/chat/completions. Please use /v1/responses or set reasoning_effort to "
            "'none'."
        )


def _at_most_128_tools(body: Body) -> Iterator[str]:
    if len(body.get("tools") or ()) > 128:
        yield "Invalid 'tools': array too long. Expected maximum length 128."


def _only_text(body: Body) -> Iterator[str]:
    for number, message in enumerate(body.get("messages") or ()):
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") not in ("text", "thinking"):
                yield (
                    "Failed to deserialize the JSON body into the target type: "
                    f"messages[{number}]: unknown variant `{part.get('type')}`, "
                    "expected `text`"
                )


def _no_null_content(body: Body) -> Iterator[str]:
    if any(message.get("content") is None for message in body["messages"]):
        yield "messages: content must be a string"


def _no_forced_tools(body: Body) -> Iterator[str]:
    switch = body.get("thinking") or {}
    is_on = switch.get("type", "enabled") == "enabled"
    if is_on and body.get("tool_choice") not in (None, "auto", "none"):
        yield "Thinking mode does not support this tool_choice"


def _exact_ids(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            if len(call["id"]) != 9 or not call["id"].isalnum():
                yield f"Tool call id was {call['id']} but must be 9 letters or digits"


def _no_user_behind_tool(body: Body) -> Iterator[str]:
    roles = [message["role"] for message in body["messages"]]
    if ("tool", "user") in pairwise(roles):
        yield "Unexpected role 'user' after role 'tool'"


def _no_system_of_the_first(body: Body) -> Iterator[str]:
    roles = {message.get("role") for message in body["messages"]}
    if body.get("model") == "o1-mini" and "system" in roles:
        yield "Unsupported value: 'messages[0].role' does not support 'system'"


def _no_reasoning(body: Body) -> Iterator[str]:
    if any("reasoning_content" in message for message in body["messages"]):
        yield "reasoning_content is not allowed in the messages of this model"


_SAMPLING = "temperature top_p frequency_penalty presence_penalty"
VENDORS: dict[str, VendorRules] = {
    "any": VendorRules(
        "llama-4",
        keys="enable_thinking",
        spoken="reasoning_content reasoning",
        rules=(_no_system_of_the_first,),
    ),
    "openai": VendorRules(
        "gpt-5.6",
        refused=f"max_tokens stop {_SAMPLING}",
        rules=(_tools_need_no_effort, _at_most_128_tools),
    ),
    "deepseek": VendorRules(
        "deepseek-v4-pro",
        keys="thinking",
        spoken="reasoning_content prefix",
        rules=(_at_most_128_tools, _only_text, _no_forced_tools),
        speech=Speech.FIELD,
        tool_turns=True,
        plain_turns=True,
        empty=True,
    ),
    "deepseek-r1": VendorRules(
        "deepseek-r1", rules=(_only_text, _no_reasoning), speech=Speech.FIELD
    ),
    "moonshot": VendorRules(
        "kimi-k2.6",
        keys="thinking",
        refused=_SAMPLING,
        spoken="reasoning_content partial",
        rules=(_no_forced_tools,),
        speech=Speech.FIELD,
        tool_turns=True,
        empty=True,
    ),
    "kimi-elsewhere": VendorRules(
        "moonshotai/Kimi-K2-Thinking",
        keys="chat_template_kwargs",
        refused="temperature",
        spoken="reasoning_content",
        rules=(_only_text,),
        speech=Speech.FIELD,
        tool_turns=True,
        empty=True,
    ),
    "zai": VendorRules(
        "glm-5.1",
        keys="thinking tool_stream do_sample",
        refused="parallel_tool_calls",
        spoken="reasoning_content",
        rules=(_only_text, _no_null_content),
        speech=Speech.FIELD,
    ),
    "openrouter-gemini": VendorRules(
        "google/gemini-3-pro",
        keys="reasoning cache_control usage provider include_reasoning models "
        "transforms",
        spoken="reasoning reasoning_details cache_control",
        speech=Speech.SEALED,
        tool_turns=True,
    ),
    "openrouter-claude": VendorRules(
        "anthropic/claude-opus-5",
        keys="reasoning cache_control usage provider include_reasoning models "
        "transforms",
        spoken="reasoning reasoning_details cache_control",
        speech=Speech.DETAILS,
        tool_turns=True,
    ),
    "gemini": VendorRules(
        "gemini-3-pro",
        keys="extra_body",
        spoken="extra_content",
        speech=Speech.SIGNATURE,
        tool_turns=True,
    ),
    "mistral": VendorRules(
        "magistral-medium",
        keys="safe_prompt random_seed prompt_mode",
        refused="stream_options logprobs top_logprobs",
        spoken="prefix",
        rules=(_exact_ids, _no_user_behind_tool),
        speech=Speech.PARTS,
    ),
    "minimax": VendorRules(
        "MiniMax-M2.5",
        keys="reasoning_split",
        refused="tool_choice",
        spoken="reasoning_details",
        rules=(_only_text,),
        speech=Speech.TAGS,
        tool_turns=True,
        plain_turns=True,
    ),
    "cerebras": VendorRules(
        "gpt-oss-120b",
        refused="parallel_tool_calls frequency_penalty presence_penalty logit_bias",
        rules=(_only_text,),
    ),
    "groq": VendorRules(
        "openai/gpt-oss-120b",
        keys="reasoning_format include_reasoning",
        refused="logprobs logit_bias top_logprobs",
        rules=(_only_text, _at_most_128_tools),
    ),
    "xai": VendorRules("grok-4.5", refused="stop frequency_penalty presence_penalty"),
    "dashscope": VendorRules(
        "qwen3-max",
        keys="enable_thinking thinking_budget",
        spoken="reasoning_content",
        rules=(_no_forced_tools, _no_null_content),
        speech=Speech.FIELD,
    ),
    "qwen-elsewhere": VendorRules(
        "Qwen/Qwen3.6-35B-A3B",
        keys="chat_template_kwargs",
        spoken="reasoning_content",
        speech=Speech.FIELD,
    ),
    "thinker": VendorRules(
        "thinker-9b",  # a model that nobody knows
        spoken="reasoning_content",
        speech=Speech.FIELD,
    ),
    "siliconflow": VendorRules(
        "zai-org/GLM-4.6",
        keys="enable_thinking thinking_budget",
        spoken="reasoning_content",
        rules=(_no_null_content,),
        speech=Speech.FIELD,
    ),
}


def refusals_of(vendor: str, body: Body) -> list[str]:
    """Return what a vendor refuses in a body, apart from its reasoning."""
    rules = VENDORS[vendor]
    found = broken_rules(body, more=rules.keys.split(), spoken=rules.spoken.split())
    found = [reason for reason in found if not reason.startswith(_OWN)]
    found = [reason for reason in found if "'type': 'thinking'" not in reason]
    found += [
        f"Unsupported parameter: '{key}' is not supported with this model."
        for key in rules.refused.split()
        if key in body
    ]
    return [*found, *(reason for rule in rules.rules for reason in rule(body))]


SKIPPED = "skip_thought_signature_validator"
# What must stand in the turns of other models as well; a placeholder may.
_WANTED_OF_ALL = (Speech.FIELD, Speech.SEALED, Speech.SIGNATURE)


@dataclass
class Turn:
    """What the upstream said in one turn, as the fields of a message."""

    calls: bool
    fields: Body = field(default_factory=dict)


class StrictVendor(FakeUpstream):
    """Calls the first tool offered once a question, then gives an answer.

    It wants its own reasoning back, unchanged; what another said it does not know.
    """

    def __init__(self, vendor: str) -> None:
        super().__init__()
        self.rules = VENDORS[vendor]
        self.vendor = vendor
        self.refusals: list[str] = []
        self.turns: dict[str, Turn] = {}  # by id of the first call, or by the text
        self.replayed = 0  # messages whose reasoning came back
        self.models = [self.rules.model]

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if request.match_info.get("path") != "chat/completions":
            return web.json_response({"detail": "Not Found"}, status=404)
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if reasons := self.judge(body):
            error = {"message": reasons[0], "type": "invalid_request_error"}
            return web.json_response({"error": error}, status=400)
        return await play(request, Script(self.answer(body)))

    def judge(self, body: Body) -> list[str]:
        """Return the reasons to refuse a body, and note them."""
        reasons = [*refusals_of(self.vendor, body), *self._reasoning(body)]
        self.refusals += reasons
        return reasons

    def answer(self, body: Body) -> list[bytes]:
        """Return the answer to a body, as events of a stream."""
        number = len(self.turns) + 1
        roles = [message["role"] for message in body["messages"]]
        asked = len(roles) - roles[::-1].index("user")
        done = any("tool_calls" in m for m in body["messages"][asked:])
        calls = bool(body.get("tools")) and not done
        call_id = f"{self.vendor.replace('-', '')[-4:]:x<4}{number:05d}"
        said, fields = _speak(self.rules.speech, number, call_id, calls=calls)
        text = "" if calls else f"Answer {number} of {self.vendor}."
        self.turns[call_id if calls else text] = Turn(calls, fields)
        if not calls:
            return [*said, delta(content=text), delta(finish="stop"), DONE]
        name = body["tools"][0]["function"]["name"]
        call: Body = {"index": 0, "id": call_id, "type": "function"}
        call["function"] = {"name": name, "arguments": "{}"}
        if self.rules.speech is Speech.SIGNATURE:
            call["extra_content"] = fields["extra_content"]
        return [*said, delta(tool_calls=[call]), delta(finish="tool_calls"), DONE]

    def _reasoning(self, body: Body) -> Iterator[str]:
        """Yield what is wrong with the reasoning in a body."""
        rules = self.rules
        for place, message in enumerate(body["messages"]):
            if message["role"] != "assistant":
                continue
            calls = message.get("tool_calls") or ()
            given = _given(message, rules.speech)
            turn = self.turns.get(_key(message))
            if given == SKIPPED or (given == "" and rules.empty):
                continue
            if given is None:
                wanted = rules.tool_turns if calls else rules.plain_turns
                if wanted and (turn or rules.speech in _WANTED_OF_ALL):
                    yield f"reasoning is missing in the assistant message {place}"
            elif turn is None or given != _given(turn.fields, rules.speech):
                yield f"reasoning of the assistant message {place} was changed"
            else:
                self.replayed += 1


def _speak(
    speech: Speech, number: int, call_id: str, *, calls: bool
) -> tuple[list[bytes], Body]:
    """Return the deltas of a thought, and the fields in which it must come back."""
    thought = f"Thought {number}: \u00e9\U0001f9f5\n"
    entry: Body = {"type": "reasoning.text", "index": 0, "format": "claude"}
    sealed: Body = {
        "type": "reasoning.encrypted",
        "data": f"CiQ+/{number}==",
        "index": 0,
        **({"id": call_id} if calls else {}),
    }
    match speech:
        case Speech.FIELD:
            pieces = [delta(reasoning_content=c) for c in thought]
            return pieces, {"reasoning_content": thought}
        case Speech.DETAILS:
            pieces = [
                delta(reasoning=c, reasoning_details=[{**entry, "text": c}])
                for c in thought
            ]
            signed = {**entry, "signature": f"S{number}=="}
            whole = {**entry, "text": thought, "signature": f"S{number}=="}
            return [*pieces, delta(reasoning_details=[signed])], {
                "reasoning_details": [whole]
            }
        case Speech.SEALED:
            return [delta(content="", reasoning_details=[sealed])], {
                "reasoning_details": [sealed]
            }
        case Speech.SIGNATURE:
            return [], {
                "extra_content": {"google": {"thought_signature": f"S{number}=="}}
            }
        case Speech.TAGS:
            text = f"<think>{thought}</think>\n\n"
            return [delta(content=c) for c in text], {"content": text}
        case Speech.PARTS:
            part = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
            return [delta(content=[part])], {"content": [part]}
        case _:
            return [], {}


def _given(message: Body, speech: Speech) -> Any:
    """Return the reasoning in a message; None where there is none."""
    content = message.get("content")
    match speech:
        case Speech.DETAILS | Speech.SEALED:
            details = message.get("reasoning_details")
            skipped = details and [entry.get("data") for entry in details] == [SKIPPED]
            return SKIPPED if skipped else details
        case Speech.SIGNATURE:
            calls = message.get("tool_calls")
            extra = (calls[0] if calls else message).get("extra_content")
            return SKIPPED if SKIPPED in json.dumps(extra) else extra
        case Speech.TAGS:
            end = "</think>\n\n"
            found = isinstance(content, str) and content.startswith("<think>")
            return str(content).partition(end)[0] + end if found else None
        case Speech.PARTS:
            parts = content if isinstance(content, list) else []
            return [p for p in parts if p.get("type") == "thinking"] or None
        case _:
            return message.get("reasoning_content")


def _key(message: Body) -> str:
    """Return what tells the turns of an upstream apart."""
    if calls := message.get("tool_calls"):
        return str(calls[0]["id"])
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return str(content).partition("</think>\n\n")[2] or str(content)


class RefusingUpstream(StrictVendor):
    """A server that follows a vendor's rules, and also refuses some fields.

    `refused` maps a field of the body to the words of the refusal.
    """

    def __init__(self, vendor: str = "any", **refused: str) -> None:
        super().__init__(vendor)
        self._refused = refused

    def judge(self, body: Body) -> list[str]:
        """Return the reasons to refuse a body, and note them."""
        reasons = [words for name, words in self._refused.items() if name in body]
        self.refusals += reasons
        return [*reasons, *super().judge(body)]


class OllamaAgent(OllamaServer):
    """Calls the first tool offered once a question, then says "Fine."."""

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        roles = [message["role"] for message in body["messages"]]
        asked = len(roles) - roles[::-1].index("user")
        if body.get("tools") and "tool" not in roles[asked:]:
            name = body["tools"][0]["function"]["name"]
            line = call_line(name, {"n": len(self.requests)}, len(self.requests))
            self.scripts = [[_thought("A tool."), line]]
        else:
            self.scripts = [[_thought("Enough."), text_line("Fine.")]]
        return await super()._chat(request)


class ResponsesAgent(ResponsesServer):
    """Calls the first tool offered once a question, then says "Done."; it reasons.

    `lost` are ids of its calls before which its reasoning was missing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[str] = []
        self._reasoned: dict[str, Body] = {}  # what came before each call, by its id

    def _answer(self, body: Any) -> list[bytes]:
        number = len(self.requests)
        self._note_lost(body["input"])
        spoken = [n for n, i in enumerate(body["input"]) if i.get("role") == "user"]
        asked = body["input"][spoken[-1] :]
        thought = reasoning_item(f"gAAA{number}+é==", f"Plan {number}.")
        self.issued.append({k: v for k, v in thought.items() if k != "id"})
        if not body.get("tools") or any("output" in item for item in asked):
            self.phases[f"Done. {number}"] = "final_answer"
            last = text_item(f"Done. {number}", phase="final_answer")
            return streamed(thought, last)
        call_id = f"call_r{number}"
        self._reasoned[call_id] = self.issued[-1]
        return streamed(thought, call_item(body["tools"][0]["name"], call_id=call_id))

    def _unfaithful(self, body: Any) -> list[str]:
        """Accept a message without its phase, which the API does as well."""
        items = [
            i for i in body["input"] if i.get("role") != "assistant" or "phase" in i
        ]
        return super()._unfaithful({**body, "input": items})

    def _note_lost(self, items: list[Body]) -> None:
        for before, item in pairwise(items):
            wanted = self._reasoned.get(item.get("call_id", ""))
            is_call = item.get("type") == "function_call"
            given = {k: v for k, v in before.items() if k != "id"}
            if is_call and wanted and given != wanted:
                self.lost.append(item["call_id"])


def _thought(text: str) -> dict[str, Any]:
    return text_line("", thinking=text)
