"""The table of refusals: each vendor's words have a class, and no other one."""

from typing import Any

import pytest

from byok.core.errors import RefusalKind
from byok.dialects.error_bodies import refusal_of
from byok.dialects.presets import OLLAMA, OPENAI_CHAT, PRESETS
from byok.dialects.refusals import class_of, window_cure
from tests.fakes.clock import check_linear

CONTEXT = {
    "Bedrock, characters": "expected maxLength: 300000, actual: 310000",
    "GitHub's code": "Sorry. tokens_limit_reached",
    "vLLM, nothing left": "max_tokens must be at least 1, got -186.",
    "Volcengine, pictures": "Total tokens of image and text exceed max message tokens",
}
OTHERS = {
    # Limits of rate speak of tokens, and are no question of the context's length.
    ("Too many tokens, please wait before trying again.", "upstream_rate_limit"),
    ("ThrottlingException: too many tokens", "upstream_rate_limit"),
    ("Too Many Requests", "upstream_rate_limit"),
    ("but model does not support multimodal requests", "upstream_no_images"),
    ("5 requests per minute", "upstream_rate_limit"),
    ("Request too large on tokens per min", "upstream_rate_limit"),
    ("Resource has been exhausted (e.g. check quota).", "upstream_rate_limit"),
    ("No deployments available, Try again in 5 seconds.", "upstream_rate_limit"),
    ("This model is currently experiencing high demand.", "upstream_overloaded"),
    ("The model is over capacity", "upstream_overloaded"),
    ("insufficient_system_resource", "upstream_overloaded"),
    ("Service temporarily unavailable", "upstream_overloaded"),
    ("No. 503 UNAVAILABLE", "upstream_overloaded"),
    ("Our servers are too busy", "upstream_overloaded"),
    ("slow_down", "upstream_overloaded"),
    ("Loading model", "upstream_loading"),
    ("Country, region, or territory not supported", "upstream_region"),
    ("unsupported_country_region_territory", "upstream_region"),
    ("It is not available in your region", "upstream_region"),
    ("Azure OpenAI's content management policy", "upstream_content_filter"),
    ("ResponsibleAIPolicyViolation", "upstream_content_filter"),
    ("Input data may contain inappropriate content.", "upstream_content_filter"),
    ("No endpoints found that support the 'tool_choice' value", "upstream_no_tools"),
    ('"auto" tool choice requires --enable-auto-tool-choice', "upstream_no_tools"),
    ("tools param requires --jinja flag", "upstream_no_tools"),
    ("It does not support function calling", "upstream_no_tools"),
    ("Function calling is not enabled for this model", "upstream_no_tools"),
    ("Thinking mode does not support this tool_choice", "upstream_bad_parameter"),
    ("tool_use_failed", "upstream_tool_failed"),
    ("Tool choice is required, but model did not call a tool", "upstream_tool_failed"),
    ("Failed to call a function.", "upstream_tool_failed"),
    ("No endpoints found that support image input", "upstream_no_images"),
    ("It does not support images", "upstream_no_images"),
    ("reasoning_effort: Input should be 'low' or 'high'", "upstream_bad_parameter"),
    ("Content Exists Risk", "upstream_content_filter"),
    ("Content violates usage guidelines.", "upstream_content_filter"),
    ("tools: Tool names must be unique.", "upstream_bad_schema"),
    ("Invalid decoding guidance syntax", "upstream_bad_schema"),
    ("Invalid function format: unhashable type", "upstream_bad_schema"),
    ("The encrypted content for item rs_0 is invalid", "upstream_bad_messages"),
    ("Tool call id x has a length of 2.", "upstream_bad_messages"),
    ("The maximum tokens you requested exceed 4096.", "upstream_bad_parameter"),
    ("tool_choice is incompatible with thinking", "upstream_bad_parameter"),
    (
        "Input tag 'adaptive' does not match any of the expected tags",
        "upstream_bad_parameter",
    ),
    ("image blocks are not supported", "upstream_no_images"),
    ("At most 0 image(s) may be provided in one request.", "upstream_no_images"),
    (
        "Invalid 'content' type. Expected one of: ['str'], got list",
        "upstream_no_images",
    ),
    ("The model expects a single `text` element per message.", "upstream_no_images"),
    ("At most 5 image(s) may be provided in one request.", "upstream_too_large"),
    ("It supports at most 1 image per prompt.", "upstream_too_large"),
    ("This image type is not supported", "upstream_refused"),
    ("failed to parse grammar", "upstream_bad_schema"),
    ("Grammar error: Unknown format: uri", "upstream_bad_schema"),
    ("JSON schema conversion failed", "upstream_bad_schema"),
    ("It has features not supported by xgrammar", "upstream_bad_schema"),
    ("error parsing tool call: raw='{'", "upstream_tool_failed"),
    ("tool call validation failed: expected array", "upstream_tool_failed"),
    ("It does not support parameters: ['tools']", "upstream_no_tools"),
    ("It does not support parameters: ['stop']", "upstream_bad_parameter"),
    ("Error loading model. (Exit code: 7)", "upstream_failed"),
    ('Failed to load model "m".', "upstream_failed"),
    ("llama runner process no longer running: -1", "upstream_failed"),
    ("model failed to load, perhaps by resource limitations", "upstream_no_memory"),
    ("x is not allowed to use Publisher Model m", "upstream_auth"),
    ("Your organization must be verified to use it", "upstream_auth"),
    ("No endpoints matching your guardrail and data policy", "upstream_not_found"),
    ("No user query found in messages.", "upstream_bad_messages"),
    ("user and assistant roles should be alternating", "upstream_bad_messages"),
    ("It does not support assistant message prefill.", "upstream_bad_messages"),
    ("Please use a valid role: user, model.", "upstream_bad_messages"),
    ("messages 参数非法。请检查文档。", "upstream_bad_messages"),
    ("temperature参数非法。请检查文档。", "upstream_bad_parameter"),
    ("The messages parameter is illegal.", "upstream_bad_messages"),
    ("text content blocks must be non-empty", "upstream_bad_messages"),
    (
        "messages with role 'tool' must be a response to a preceding one",
        "upstream_bad_messages",
    ),
    ("`content[].thinking` must be passed back to the API.", "upstream_bad_messages"),
    ("It must have either content or tool_calls", "upstream_bad_messages"),
    ("Value is not callable: null at row 49, column 79", "upstream_bad_messages"),
    ("While executing FilterExpression at line 120", "upstream_bad_messages"),
    ("The parameter is invalid. Please check again.", "upstream_bad_parameter"),
    ("user: extra fields not permitted", "upstream_bad_parameter"),
    ("budget_tokens: Input should be greater", "upstream_bad_parameter"),
    ("image input is not supported", "upstream_no_images"),
    (
        "failed to process inputs: this model is missing data required for image input",
        "upstream_no_images",
    ),
    ("m is not a multimodal model", "upstream_no_images"),
    ("image_url is only supported by certain models.", "upstream_no_images"),
    ('Unsupported content part type: "image_url"', "upstream_no_images"),
    ("unknown variant `image_url`, expected `text`", "upstream_no_images"),
    ("Invalid schema for function 'view'", "upstream_bad_schema"),
    ("Schemas contains too many parameters", "upstream_bad_schema"),
    ("invalid_function_parameters", "upstream_bad_schema"),
    ("input_schema does not support oneOf at the top level", "upstream_bad_schema"),
    ("tools.5.custom.name: String should match pattern", "upstream_bad_schema"),
    ("model requires more system memory (8 GiB) than is there", "upstream_no_memory"),
    ("models/x is not found for API version v1beta", "upstream_not_found"),
    ("x is not a valid model ID", "upstream_not_found"),
    ("unsupported_api_for_model", "upstream_wrong_api"),
    ("The provided model identifier is invalid.", "upstream_not_found"),
    ("Server is pinned to x", "upstream_not_found"),
    ("Invalid model name passed in model=x.", "upstream_not_found"),
    ("There are no healthy deployments for this model", "upstream_not_found"),
    ("No models loaded. Please load a model.", "upstream_not_found"),
    ("DeploymentNotFound", "upstream_not_found"),
    ("invalid x-api-key", "upstream_auth"),
    ("Unauthorized", "upstream_auth"),
    ("UNAUTHENTICATED", "upstream_auth"),
    ("authentication_error", "upstream_auth"),
    # About something else than the length of the context.
    ("Extra usage is required for long prompts.", "upstream_quota"),
    ("No endpoints found matching your data policy", "upstream_not_found"),
    ("It is only supported in v1/responses", "upstream_wrong_api"),
    ("It is not accessible via the /chat/completions path", "upstream_wrong_api"),
    ("This is not a chat model", "upstream_wrong_api"),
    ("For that, use /v1/responses", "upstream_wrong_api"),
    ("A thought_signature is missing", "upstream_bad_messages"),
    ("reasoning_content is missing at index 2", "upstream_bad_messages"),
    ("Gemini wants reasoning details to be preserved", "upstream_bad_messages"),
    ("invalid_request_message_order", "upstream_bad_messages"),
    ("Conversation roles must alternate", "upstream_bad_messages"),
    ("max_tokens: 9 > 5, which is the maximum", "upstream_bad_parameter"),
    ("error: cannot make GET request", "upstream_bad_messages"),
    ("It doesn't support the s3Uri field", "upstream_bad_messages"),
    ("The parameter seed is not supported", "upstream_bad_parameter"),
    ("seed: Extra inputs are not permitted", "upstream_bad_parameter"),
    ("Logprobs are not enabled", "upstream_bad_parameter"),
    ("Cannot use both json_schema and grammar", "upstream_bad_parameter"),
    ("Image too large: context size 5 MB", "upstream_too_large"),
    ("image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", "upstream_too_large"),
    ("One of the image dimensions exceed max allowed size", "upstream_too_large"),
    ("context limit of tools exceeded: at most 128 tools", "upstream_too_many_tools"),
    ("'tools' : maximum number of items is 128", "upstream_too_many_tools"),
    ("Anthropic expects the `tools=` param to be passed in", "upstream_needs_tools"),
    ("tools: Field required", "upstream_needs_tools"),
    ("The toolConfig field must be defined when using toolUse", "upstream_needs_tools"),
    (
        "Requests which include `tool_use` blocks must define tools",
        "upstream_needs_tools",
    ),
    ("parameters is not a valid moonshot flavored json schema", "upstream_bad_schema"),
    ("Schema validation failed: /properties/a", "upstream_bad_schema"),
    ("JSON Schema not supported: could not understand", "upstream_bad_schema"),
    ("Unknown Model, please check the model code.", "upstream_not_found"),
    ("modelCode: does not exist", "upstream_not_found"),
    ("Model Not Exist", "upstream_not_found"),
    (
        "The supported API model names are a or b, but you passed c",
        "upstream_not_found",
    ),
    ("Invocation of x with on-demand throughput isn't supported", "upstream_not_found"),
    ("Could not resolve the foundation model from x", "upstream_not_found"),
    ("You don't have access to the model with that ID", "upstream_not_found"),
    ("The model 'x' has reached its end of life", "upstream_not_found"),
}


@pytest.mark.parametrize("text", CONTEXT.values(), ids=CONTEXT)
def test_refusal_of_a_context_overflow_is_recognised(text: str) -> None:
    for status in (0, 400, 413, 500):
        found = class_of(text, status)
        assert (found.kind, found.retryable) == ("context_length", False)
        assert "start a new conversation" in found.hint


@pytest.mark.parametrize(("text", "code"), sorted(OTHERS))
def test_refusal_words_give_its_class(text: str, code: str) -> None:
    assert class_of(text, 400).kind == code


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (0, "upstream_failed", True),
        (400, "upstream_refused", False),
        (401, "upstream_auth", False),
        (402, "upstream_quota", False),
        (403, "upstream_auth", False),
        (404, "upstream_not_found", False),
        (405, "upstream_not_found", False),
        (413, "upstream_too_large", False),
        (422, "upstream_refused", False),
        (429, "upstream_rate_limit", True),
        (500, "upstream_failed", True),
        (501, "upstream_refused", True),
        (503, "upstream_failed", True),
        (529, "upstream_overloaded", True),
    ],
)
def test_refusal_without_known_words_is_classed_by_status(
    status: int, code: str, retryable: bool
) -> None:
    found = class_of("Sorry", status)
    assert (found.kind, found.retryable) == (code, retryable)


@pytest.mark.parametrize(
    "words", ["invalid_request_error", "INVALID_ARGUMENT", "permission_error"]
)
def test_refusal_of_a_bad_request_inside_a_stream_is_not_repeated(words: str) -> None:
    assert not class_of(f"Sorry {words}", 0).retryable
    assert class_of("Sorry server_error", 0).retryable


def test_refusal_413_that_names_tokens_is_a_context_overflow() -> None:
    assert (
        class_of("The payload has more tokens than fit", 413).kind == "context_length"
    )
    assert class_of("Too many tokens per minute", 413).kind == "upstream_rate_limit"
    assert class_of("The payload is large", 413).kind == "upstream_too_large"


def test_endless_words_take_linear_time() -> None:
    check_linear(lambda count: class_of("input tokens " * count, 400), 8000)


# Error bodies of many vendors and servers: the class of each, and what to do


QUOTA, RATE, BUSY = RefusalKind.QUOTA, RefusalKind.RATE_LIMIT, RefusalKind.OVERLOADED
AUTH, FAILED, LONG = RefusalKind.AUTH, RefusalKind.FAILED, RefusalKind.CONTEXT_LENGTH
NOT_FOUND, FILTER = RefusalKind.NOT_FOUND, RefusalKind.CONTENT_FILTER
MESSAGES, PARAMETER = RefusalKind.BAD_MESSAGES, RefusalKind.BAD_PARAMETER
SCHEMA, NO_TOOLS, REGION = (
    RefusalKind.BAD_SCHEMA,
    RefusalKind.NO_TOOLS,
    RefusalKind.REGION,
)
NOW = 1_780_000_000.0  # 2026-05-28T20:26:40Z
INVALID = "invalid_request_error"


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


def google(message: str, code: int, status: str, *details: Any) -> Any:
    fields: dict[str, Any] = {"code": code, "status": status}
    return error(message, **fields, details=list(details))


def quota(*ids: str) -> dict[str, Any]:
    violations = [{"quotaId": i, "quotaValue": "5"} for i in ids]
    return {"@type": "google.rpc.QuotaFailure", "violations": violations}


def retry(delay: str) -> dict[str, Any]:
    return {"@type": "google.rpc.RetryInfo", "retryDelay": delay}


def reason(name: str, **metadata: str) -> dict[str, Any]:
    return {"@type": "google.rpc.ErrorInfo", "reason": name, "metadata": metadata}


def minimax(code: int, message: str) -> dict[str, Any]:
    return {"base_resp": {"status_code": code, "status_msg": message}}


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


PAST = "You exceeded your current quota, please check your plan and billing details."

# A name, the status (0 in a stream), the body, the class, and a word of the cure.
Row = tuple[str, int, Any, RefusalKind, str]
ROWS: list[Row] = [
    ("z.ai, 5 hours",
     429, error("Usage limit reached for 5 hour. Your limit will reset at 2026-05-29 "
                "07:41:44", code="1308"), QUOTA, "2026-05-29 07:41:44"),
    ("Gemini, a day",
     429, google(PAST, 429, "RESOURCE_EXHAUSTED",
                 quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
                 retry("17s")), QUOTA, "day"),
    ("Code Assist, no capacity",
     429, google("No capacity for this model.", 429, "RESOURCE_EXHAUSTED",
                 reason("MODEL_CAPACITY_EXHAUSTED"), retry("4s")), BUSY, "Wait"),
    ("Gemini, its API is off",
     403, google("The API has not been used in project 7 before or it is disabled.",
                 403, "PERMISSION_DENIED", reason("SERVICE_DISABLED")),
     AUTH, "permissions"),
    ("Gemini, turn order",
     400, google("Please ensure that function call turn comes immediately after a "
                 "user turn.", 400, "INVALID_ARGUMENT"), MESSAGES, "conversation"),
    ("Gemini, states",
     400, google("The specified schema produces a constraint that has too many states "
                 "for serving.", 400, "INVALID_ARGUMENT"), SCHEMA, "MCP"),
    ("Gemini, place",
     400, google("User location is not supported for the API use.", 400,
                 "FAILED_PRECONDITION"), REGION, "place"),
    ("xAI, key",
     400, {"code": "invalid-argument", "error": "Incorrect API key provided: ab***."},
     AUTH, "key"),
    ("xAI, blocked for safety",
     403, {"code": "permission-denied", "error": "Content violates usage policies."},
     FILTER, "filter"),
    ("one-api, no quota",
     403, error("user quota is not enough", type="one_api_error"), QUOTA, "balance"),
    ("new-api, no channel",
     503, error("当前分组 default 下对于模型 glm-9 无可用渠道",
                type="new_api_error"), NOT_FOUND, "model"),
    ("new-api, load",
     429, error("当前分组上游负载已饱和，请稍后再试", type="new_api_error"),
     BUSY, "Wait"),
    ("Ollama, subscription",
     403, {"error": "this model requires a subscription, upgrade for access: https://x"},
     QUOTA, "does not include"),
    ("Ollama, runner",
     500, {"error": "model runner has unexpectedly stopped, this may be due to "
           "resource limitations"}, FAILED, "load it again"),
    ("Ollama, memory",
     500, {"error": "llama runner process has terminated: cudaMalloc failed: out of "
           "memory"}, RefusalKind.NO_MEMORY, "smaller"),
    ("Ollama, tools",
     400, {"error": "registry.ollama.ai/library/phi9 does not support tools"},
     NO_TOOLS, "tools"),
    ("Codex, not in the plan",
     403, error("To use it, upgrade.", type="usage_not_included", plan_type="free"),
     QUOTA, "does not include"),
    ("MiniMax, results",
     400, anthropic("bad_request_error", "invalid params, tool result's tool id(c_1) "
                    "not found (2013)"), MESSAGES, "conversation"),
    ("MiniMax, role",
     400, error("invalid params, chat content has invalid message role: system (2013)",
                type="bad_request_error"), MESSAGES, "conversation"),
    ("MiniMax, setting",
     400, error("invalid params, invalid chat setting (2013)"), PARAMETER, "parameter"),
    ("MiniMax, empty parameters",
     400, error("invalid params, function parameters is empty (2013)"), SCHEMA, "MCP"),
    ("MiniMax, words", 0, minimax(1027, "output new_sensitive"), FILTER, "filter"),
    ("MiniMax, key", 0, minimax(1004, "cookie is missing, log in again"), AUTH, "key"),
    ("Kimi, no money",
     403, error("Your account is not active, current quota exceeded.",
                type="exceeded_current_quota_error"), QUOTA, "balance"),
    ("Kimi, clients only",
     403, error("Kimi For Coding is currently only available for Coding Agents.",
                type="access_terminated_error"), AUTH, "clients"),
    ("Kimi, busy",
     429, error("The engine is currently overloaded.", type="engine_overloaded_error"),
     BUSY, "Wait"),
    ("Copilot, allowance",
     402, error("You have no quota", code="quota_exceeded"), QUOTA, "plan"),
    ("Anthropic, calls without results",
     400, anthropic(INVALID, "messages.8: `tool_use` ids were found without "
                    "`tool_result` blocks immediately after: t_1."),
     MESSAGES, "does not take the history"),
    ("Anthropic, results without calls",
     400, anthropic(INVALID, "messages.2.content.0: unexpected `tool_use_id` found in "
                    "`tool_result` blocks: t_1."),
     MESSAGES, "does not take the history"),
    ("Anthropic, thinking",
     400, anthropic(INVALID, "messages.1.content.0: `thinking` or `redacted_thinking` "
                    "blocks in the latest assistant message cannot be modified."),
     MESSAGES, "does not take the history"),
    ("Anthropic, grammar",
     400, anthropic(INVALID, "The compiled grammar is too large. Simplify your tool "
                    "schemas."), SCHEMA, "MCP"),
    ("Anthropic, limit of spending",
     400, anthropic(INVALID, "You have reached your specified API usage limits. You "
                    "will regain access on 2026-06-01 at 00:00 UTC."), QUOTA, "plan"),
    ("Anthropic, picture",
     400, anthropic(INVALID, "messages.0.content.1.image: Could not process image"),
     MESSAGES, "attachment"),
    ("OpenAI, no output",
     400, error("No tool output found for function call c_1.", type=INVALID,
                param="input"), MESSAGES, "conversation"),
    ("Perplexity, long",
     400, error("The prompt has 140000 tokens, 131072 at most.",
                type="too_many_prompt_tokens", code=400), LONG, "conversation"),
    ("Perplexity, order",
     400, error("Last message role must be `user`", type="invalid_message", code=400),
     MESSAGES, "conversation"),
    ("Novita, tools",
     400, {"code": 400, "reason": "INVALID_REQUEST_BODY",
           "message": "model features function calling not support"},
     NO_TOOLS, "tools"),
    ("Novita, balance",
     403, {"code": 403, "reason": "NOT_ENOUGH_BALANCE",
           "message": "not enough balance"},
     QUOTA, "balance"),
    ("Cerebras, schema",
     400, {"message": "Schema is too complex.", "type": INVALID, "param": "tools",
           "code": "wrong_api_format"}, SCHEMA, "MCP"),
    ("SiliconFlow, balance",
     403, {"code": 30001, "message": "Sorry, your account balance is insufficient"},
     QUOTA, "balance"),
    ("OpenRouter, moderation",
     403, error("Input was flagged: harassment", code=403,
                metadata={"reasons": ["harassment"]}), FILTER, "filter"),
    ("Mistral, capacity",
     429, {"object": "error", "message": "Service tier capacity exceeded for this "
           "model.", "type": "service_tier_capacity_exceeded", "code": "3505"},
     BUSY, "Wait"),
    ("LM Studio, unloaded", 400, {"error": "Model is unloaded."}, NOT_FOUND, "Load"),
    ("Russian, money", 403, error("Недостаточно средств на балансе"), QUOTA, "balance"),
    ("Japanese, rate", 400, error("リクエストが多すぎます"), RATE, "Wait"),
    ("German, busy", 500, error("Der Dienst ist überlastet."), BUSY, "Wait"),
    ("Chinese, frequency", 400, error("请求过于频繁，请稍后再试"), RATE, "Wait"),
]  # fmt: skip
# What may pass when asked again within seconds; a quota does not.
PASSING = {RATE, BUSY, FAILED}


def test_vendors_errors_have_their_class_and_a_cure_that_fits() -> None:
    wrong = []
    for name, status, body, kind, cure in ROWS:
        error = refusal_of(body, status, now=NOW)
        seen = (error.kind.value, error.retryable, cure in error.hint)
        if seen != (kind.value, kind in PASSING, True):
            wrong.append(f"{name}: {seen} {error.sentence}")
    assert not wrong, f"{len(wrong)} of {len(ROWS)}:\n" + "\n".join(wrong)
    assert len({name for name, *_ in ROWS}) == len(ROWS)


# Each vendor's users are told what they can do about a small window


@pytest.mark.parametrize(
    ("vendor", "dialect", "word"),
    [
        ("ollama", OLLAMA, "num_ctx"),
        ("ollama", OPENAI_CHAT, "OLLAMA_CONTEXT_LENGTH"),
        ("vllm", OPENAI_CHAT, "--max-model-len"),
        ("openai_compatible", OPENAI_CHAT, "context_window"),
    ],
)
def test_a_cure_names_the_setting(vendor: str, dialect: str, word: str) -> None:
    assert word in window_cure(vendor, dialect)


def test_every_local_server_has_a_cure_of_its_own() -> None:
    local = [name for name, preset in PRESETS.items() if preset.local]
    assert len({window_cure(name, OPENAI_CHAT) for name in local}) == len(local)
