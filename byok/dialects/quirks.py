"""Quirks: how vendors' Chat Completions APIs differ from OpenAI's, as data.

The row of a vendor (`dialects/presets.py`) lists only its differences from the default,
which most servers accept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from byok.dialects.model_facts import Replay
from byok.dialects.safe_names import ANY_ID, IdRule


class EffortForm(StrEnum):
    """How a vendor's API says how much a model should reason."""

    NONE = "none"  # in no way
    FIELD = "reasoning_effort"
    OBJECT = "reasoning"  # {"effort"}, as OpenRouter
    SWITCH = "thinking"  # {"type": "enabled"}, and `reasoning_effort` if it has values
    BUDGET = "enable_thinking"  # a flag, and `thinking_budget` in tokens
    TEMPLATE = "chat_template_kwargs"  # for the chat template of a local server


class JsonForm(StrEnum):
    """What a vendor's `response_format` accepts."""

    SCHEMA = "json_schema"
    OBJECT = "json_object"
    NONE = "none"


class CacheForm(StrEnum):
    """How a vendor's API is asked for prompt caching, where it does not cache unasked.

    CLAUDE: with `cache_control`, for the models of Anthropic only. PARTS: with
    `cache_control` in the content of messages.
    """

    NONE = "none"
    CLAUDE = "claude"
    PARTS = "parts"


@dataclass(frozen=True, slots=True)
class Quirks:
    """The differences of one vendor's API.

    Attributes:
        output_cap: the body field that limits the answer's tokens.
        null_content: `content: null` is accepted beside tool calls; else it is "".
        stream_options: `stream_options.include_usage` is accepted and needed.
        tool_choice: send `"auto"`; False where that is the default or refused.
        forced_tools: a `tool_choice` other than `auto` is accepted.
        parallel_tool_calls: the field of that name is accepted.
        tool_ids: which ids of tool calls are accepted.
        most_tools: the maximum number of tools in a request, 0 for no limit.
        narrow_schemas: tool schemas must use Gemini's subset of JSON Schema.
        plain_keys: a tool's parameters have letters, digits, _, . and - in their names.
        auth_header: the header for the key; `Authorization` takes `Bearer <key>`.
        strict_roles: a user message may not follow a tool message directly.
        replay: which earlier reasoning goes back, where the facts do not know it;
            reasoning without data is sent as text, in `reasoning_field`.
        empty_reasoning: where reasoning must go back and is unknown, "" is sent.
        reasoning_field: the field of a message for reasoning as text.
        details: `reasoning_details` go back, also for models of Google.
        effort: the form of the effort.
        tools_without_effort: models that belong to another API take tools here only
            with the effort `none`.
        json_answer: what `response_format` accepts.
        cache: how prompt caching is asked for.
        cache_key: the body field for a key of the conversation, which leads to the
            host that has its prefix in the cache; `cache_header` is a header for it.
        preserve_thinking: the path of the flag with which models that were trained for
            it (Qwen 3.6 and later) keep the reasoning of earlier turns; "" for none.
        with_tools: further body fields of a request with tools to a model that reasons.
        always: further body fields of every request.
        stands_in: the vendor has an API of its own that does more: it caches, keeps
            reasoning, or can be told the window.
        loaded: the paths that describe the loaded models; the first answer counts.
    """

    output_cap: str = "max_tokens"
    null_content: bool = True
    stream_options: bool = True
    tool_choice: bool = True
    forced_tools: bool = True
    parallel_tool_calls: bool = True
    tool_ids: IdRule = ANY_ID
    most_tools: int = 0
    narrow_schemas: bool = False
    plain_keys: bool = False
    auth_header: str = "Authorization"
    strict_roles: bool = False
    replay: Replay | None = None
    empty_reasoning: bool = False
    reasoning_field: str = "reasoning_content"
    details: bool = False
    effort: EffortForm = EffortForm.FIELD
    tools_without_effort: bool = False
    json_answer: JsonForm = JsonForm.SCHEMA
    cache: CacheForm = CacheForm.NONE
    cache_key: str = ""
    cache_header: str = ""
    preserve_thinking: str = ""
    with_tools: Mapping[str, Any] = field(default_factory=dict, hash=False)
    always: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stands_in: bool = False
    loaded: tuple[str, ...] = ()


DEFAULT = Quirks()
