"""What each vendor's Chat Completions API refuses today, as rows.

Sources: the vendors' API references and the issue threads of other bridges.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, TypeAlias

from tests.fakes.strict import broken_rules

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
