"""What refusals say, as data: patterns of their text, the kind of refusal, a hint.

The first row with a pattern in the message or code decides. Rate limits and quotas
come before the context length, because their texts mention tokens too. A pattern is a
regular expression for text in lower case.
"""

from dataclasses import dataclass
from typing import TypeAlias

from byok.dialects.overflow import OVERFLOW_SIGNS
from byok.errors import ContextLengthExceeded, RefusalKind


@dataclass(frozen=True, slots=True)
class Refusal:
    """A class of refusals; `retryable` ones may pass when asked again."""

    kind: RefusalKind
    hint: str
    retryable: bool = False


RefusalRow: TypeAlias = tuple[tuple[str, ...], Refusal]

TOO_LONG = Refusal(RefusalKind.CONTEXT_LENGTH, ContextLengthExceeded.hint)

ROWS: tuple[RefusalRow, ...] = (
    (
        (r"extra usage is required",),
        Refusal(
            RefusalKind.QUOTA,
            "Start a new conversation, or allow extra usage in that account.",
        ),
    ),
    (
        (r"request too large .*per min",),
        Refusal(
            RefusalKind.RATE_LIMIT,
            "Your account may not send that much at once: start a new conversation, "
            "or raise its limit.",
        ),
    ),
    (
        (r"per[ _]?day", r"daily (?:limit|quota)"),
        Refusal(
            RefusalKind.QUOTA,
            "That was its limit for a day: go on later, or choose another model or "
            "plan.",
        ),
    ),
    (
        (r"insufficient[ _](?:quota|balance|credit|fund)", r"credit balance",
         r"requires more credits", r"spending limit", r"\barrear",
         r"(?:billing|exceeded your current)(?!.*retry in)"),
        Refusal(RefusalKind.QUOTA, "Check the balance of that account."),
    ),
    (
        (r"rate[ _-]?limit", r"too many requests", r"resource (?:has been )?exhausted",
         r"resource_exhausted", r"per minute", r"throttl",
         r"please wait before", r"(?:retry|try again) in \d"),
        Refusal(RefusalKind.RATE_LIMIT, "Wait a little and try again.", True),
    ),
    (
        (r"overloaded", r"over capacity", r"high demand", r"system_resource",
         r"temporarily unavailable", r"503 unavailable", r"too busy",
         r"server busy", r"capacity[_ ]exceeded", r"slow_down"),
        Refusal(
            RefusalKind.OVERLOADED,
            "Wait a little and try again, or choose another model.",
            True,
        ),
    ),
    (
        (r"loading model",),
        Refusal(RefusalKind.LOADING, "It loads its model: wait a little.", True),
    ),
    (
        (r"physical batch size",),
        Refusal(
            RefusalKind.CONTEXT_LENGTH, "Start llama.cpp with a larger --ubatch-size."
        ),
    ),
    (
        (r"'tools'.{0,3}(?:array too long|maximum number of items)",
         r"(?:at most|more than|maximum of|limit of|up to|too many) (?:\d+ )?"
         r"(?:tools|functions|function declarations)\b"),
        Refusal(RefusalKind.TOO_MANY_TOOLS, "Switch off some MCP servers."),
    ),
    (
        (r"invalid[ _](?:json |tool )?schema", r"schemas? contains too many",
         r"input_schema", r"invalid_function_parameters",
         r"function_?declarations?.*(?:parameters|schema)", r"moonshot flavored",
         r"schema validation failed", r"json schema not supported",
         r"\btools(?:\[\d+\]|\.\d+)\."),
        Refusal(
            RefusalKind.BAD_SCHEMA,
            "A tool's parameters are too unusual for it: switch off the MCP server "
            "of that tool, or choose another model.",
        ),
    ),
    (
        (r"expects the `?tools=?`? param", r"\btools: field required",
         r"toolconfig field must be defined", r"blocks must define tools"),
        Refusal(
            RefusalKind.NEEDS_TOOLS,
            "Start a new conversation: it wants tools with a history of tool calls.",
        ),
    ),
    (
        (r"image (?:is )?too large", r"image exceeds", r"image dimensions exceed"),
        Refusal(
            RefusalKind.TOO_LARGE,
            "Send a smaller image, or start a new conversation.",
        ),
    ),
    (
        OVERFLOW_SIGNS,
        TOO_LONG,
    ),
    (
        (r"unsupported_country", r"country,? (?:region|or territory)",
         r"(?:country|region|location)(?: is)? not (?:supported|available)",
         r"not available in your (?:country|region)"),
        Refusal(
            RefusalKind.REGION,
            "That provider does not serve your place: choose another upstream.",
        ),
    ),
    (
        (r"matching your data policy",),
        Refusal(
            RefusalKind.NOT_FOUND,
            "Change the privacy settings of that account, which exclude every host of "
            "this model.",
        ),
    ),
    (
        (r"content[ _](?:filter|policy|management)", r"responsibleaipolicy",
         r"data_inspection_failed", r"inappropriate content"),
        Refusal(
            RefusalKind.CONTENT_FILTER,
            "Its filter refused the words: say it differently, or choose another "
            "model.",
        ),
    ),
    (
        (r"requires --jinja",),
        Refusal(RefusalKind.NO_TOOLS, "Start llama-server with --jinja."),
    ),
    (
        (r"enable-auto-tool",),
        Refusal(
            RefusalKind.NO_TOOLS,
            "Start the server with --enable-auto-tool-choice and --tool-call-parser.",
        ),
    ),
    (
        (r"not support tools", r"not support function[ _]?call",
         r"(?<!parallel )(?:tools? (?:are|is|calling`? is)|function[ _]calling is) not "
         r"(?:supported|enabled)",
         r"no endpoints found that support .*tool"),
        Refusal(
            RefusalKind.NO_TOOLS,
            "Choose a model that can call tools, or use the chat mode.",
        ),
    ),
    (
        (r"tool_use_failed", r"did not call a tool", r"failed to call a function"),
        Refusal(RefusalKind.TOOL_FAILED, "The model called a tool wrongly: ask again."),
    ),
    (
        (r"unknown variant `image_url`",
         # Of one kind of pictures, all others are seen.
         r"not support (?:image|vision)(?!s? (?:\w+ )?(?:type|format|mime|url))",
         r"image input is not supported", r"image_url is only supported",
         r"unsupported content part type: .image",
         r"no endpoints found that support image",
         r"is not a multimodal model", r"not support multimodal"),
        Refusal(
            RefusalKind.NO_IMAGES,
            "Choose a model that supports images, or start a conversation without one.",
        ),
    ),
    (
        (r"more system memory", r"out of memory"),
        Refusal(
            RefusalKind.NO_MEMORY,
            "Choose a smaller model, or give the server a smaller context.",
        ),
    ),
    (
        (r"only (?:supported|available) (?:in|via|with) (?:the )?/?v1/",
         r"not (?:supported|accessible) (?:in|via|with) (?:the )?/?(?:v1/)?"
         r"(?:chat/completions|responses|messages)",
         r"not a chat model", r"use /?v1/(?:responses|completions|messages)",
         r"unsupported_api_for_model"),
        Refusal(
            RefusalKind.WRONG_API,
            "Choose another model, or set dialect in that upstream's section to the "
            "API that it names.",
        ),
    ),
    (
        (r"deploymentnotfound",),
        Refusal(
            RefusalKind.NOT_FOUND, "Azure wants the name of your deployment as model."
        ),
    ),
    (
        (r"no models? (?:is |are )?loaded",),
        Refusal(RefusalKind.NOT_FOUND, "Load a model in that server first."),
    ),
    (
        (r"model[ _]not[ _](?:found|supported|exist)",
         r"\bmodel\b.* (?:does not exist|not found)", r"models?/\S+ is not found",
         r"model identifier is invalid", r"not a valid model",
         r"invalid[ _]model\b", r"unknown model", r"modelcode.* not exist",
         r"supported api model names", r"模型不存在", r"on-demand throughput",
         r"resolve the foundation model", r"have access to the model",
         r"reached its end of life", r"no healthy deployments", r"server is pinned to"),
        Refusal(
            RefusalKind.NOT_FOUND,
            "Check the model's name (byok models) and base_url.",
        ),
    ),
    (
        (r"api[ _]key[ _](?:is )?(?:not valid|invalid)",
         r"(?:invalid|incorrect|wrong)[ _]api[ _-]?key", r"invalid x-api-key",
         r"authentication", r"unauthori[sz]ed", r"unauthenticated"),
        Refusal(RefusalKind.AUTH, "Check the key: byok keys list."),
    ),
    (
        (r"thought_signature", r"thinking block",
         r"reasoning_content.*(?:passed back|missing)",
         r"reasoning details to be preserved", r"message_order", r"unexpected role",
         r"roles? must alternate", r"tool_call_id"),
        Refusal(
            RefusalKind.BAD_MESSAGES,
            "Start a new conversation: it does not take the history of this one.",
        ),
    ),
    (
        (r"max_?(?:completion_?|output_?|new_?)?tokens\b.*"
         r"(?:maximum|at most|too large|exceed|less than)",),
        Refusal(
            RefusalKind.BAD_PARAMETER,
            "Lower max_tokens in the settings: the model writes no answer that long.",
        ),
    ),
    (
        # A place in the conversation: what stands there is refused.
        (r"\b(?:messages|input|contents)(?:\[|\.|/)\d", r"cannot make get request",
         r"support the \w*(?:uri|url|file|audio)\w* field"),
        Refusal(
            RefusalKind.BAD_MESSAGES,
            "Leave out the attachment that it does not take, or start a new "
            "conversation.",
        ),
    ),
    (
        (r"(?:unsupported|unknown|unrecogni[sz]ed|invalid)"
         r" (?:\w+ )?(?:parameter|value|field|argument)",
         r"\bparameter\b.*not support", r"extra inputs are not",
         r"\b(?:temperature|top_p|logprobs|tool_choice|enable_thinking)\b.*"
         r"(?:not |deprecated|only|must|range|below)",
         r"not support this tool_choice", r"cannot use both"),
        Refusal(
            RefusalKind.BAD_PARAMETER,
            "Change that parameter in [chat], in that upstream's section or in "
            "extra_body.",
        ),
    ),
)  # fmt: skip
