"""The table of refusals: each vendor's words have a class, and no other one."""

import json
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
    "Volcengine, pictures": "Total tokens of image and text exceed max message tokens",
}
OTHERS = {
    # Limits of rate speak of tokens, and are no question of the context's length.
    ("Request too large on tokens per minute (TPM)", "upstream_rate_limit"),
    ("Too many tokens, please wait before trying again.", "upstream_rate_limit"),
    ("ThrottlingException: too many tokens", "upstream_rate_limit"),
    ("Too Many Requests", "upstream_rate_limit"),
    ("but model does not support multimodal requests", "upstream_no_images"),
    ("You have reached your daily limit", "upstream_quota"),
    ("5 requests per minute", "upstream_rate_limit"),
    ("Request too large on tokens per min", "upstream_rate_limit"),
    ("Resource has been exhausted (e.g. check quota).", "upstream_rate_limit"),
    ("No deployments available, Try again in 5 seconds.", "upstream_rate_limit"),
    ("This request requires more credits, or fewer max_tokens.", "upstream_quota"),
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
    ("image input is not supported", "upstream_no_images"),
    ("m is not a multimodal model", "upstream_no_images"),
    ("image_url is only supported by certain models.", "upstream_no_images"),
    ('Unsupported content part type: "image_url"', "upstream_no_images"),
    ("unknown variant `image_url`, expected `text`", "upstream_no_images"),
    ("Invalid schema for function 'view'", "upstream_bad_schema"),
    ("Schemas contains too many parameters", "upstream_bad_schema"),
    ("tools.0.custom.input_schema: wrong", "upstream_bad_schema"),
    ("invalid_function_parameters", "upstream_bad_schema"),
    ("input_schema does not support oneOf at the top level", "upstream_bad_schema"),
    ("tools.5.custom.name: String should match pattern", "upstream_bad_schema"),
    (
        "Unknown name \"const\" at 'tools[0].function_declarations[5].parameters'",
        "upstream_bad_schema",
    ),
    ("model requires more system memory (8 GiB) than is there", "upstream_no_memory"),
    ("Model not found: x", "upstream_not_found"),
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
    ("At most 512 function declarations can be specified", "upstream_too_many_tools"),
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


@pytest.mark.parametrize("status", [401, 404, 429])
def test_refusal_words_win_over_the_status(status: int) -> None:
    assert class_of("Your credit balance is too low", status).kind == "upstream_quota"


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
PAGE = "<!DOCTYPE html><html><head><title>{}</title></head><body>{}</body></html>"

# A name, the status (0 in a stream), the body, the class, and a word of the cure.
Row = tuple[str, int, Any, RefusalKind, str]
ROWS: list[Row] = [
    ("Gemini, a minute",
     429, google(PAST, 429, "RESOURCE_EXHAUSTED",
                 quota("GenerateContentInputTokensPerModelPerMinute-FreeTier"),
                 retry("2s")), RATE, "2 s"),
    ("Gemini, a list, requests of a minute",
     429, [google(PAST, 429, "RESOURCE_EXHAUSTED",
                  quota("GenerateRequestsPerMinutePerProjectPerModel"),
                  retry("41s"))], RATE, "41 s"),
    ("Gemini, a minute, without a delay",
     429, google(PAST, 429, "RESOURCE_EXHAUSTED",
                 quota("GenerateRequestsPerMinutePerProject")), RATE, "Wait"),
    ("Gemini, a day",
     429, google(PAST, 429, "RESOURCE_EXHAUSTED",
                 quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
                 retry("17s")), QUOTA, "day"),
    ("Gemini, a model without a free tier",
     429, google(f"{PAST} * Quota exceeded for metric: requests, limit: 0", 429,
                 "RESOURCE_EXHAUSTED",
                 quota("GenerateRequestsPerMinutePerProject-FreeTier"),
                 retry("30s")), QUOTA, "does not include"),
    ("Code Assist, reset in days",
     429, google("Your capacity for this model is gone.", 429, "RESOURCE_EXHAUSTED",
                 reason("QUOTA_EXHAUSTED", quotaResetDelay="161h39m41.3s"),
                 retry("581981.3s")), QUOTA, "reset in 7 days"),
    ("Code Assist, no capacity",
     429, google("No capacity for this model.", 429, "RESOURCE_EXHAUSTED",
                 reason("MODEL_CAPACITY_EXHAUSTED"), retry("4s")), BUSY, "Wait"),
    ("Code Assist, a day by its limit's name",
     429, google("Quota exceeded for quota metric 'Pro Requests'.", 429,
                 "RESOURCE_EXHAUSTED",
                 reason("RATE_LIMIT_EXCEEDED", quota_limit="ProRequestsPerDay")),
     QUOTA, "day"),
    ("Gemini, through a proxy, as text",
     429, error(json.dumps(google(PAST, 429, "RESOURCE_EXHAUSTED",
                                  quota("InputTokensPerMinute-FreeTier"),
                                  retry("26s"))), code=429,
                status="Too Many Requests"), RATE, "26 s"),
    ("Gemini, its project has no billing",
     403, google("This API method requires billing to be enabled.", 403,
                 "PERMISSION_DENIED", reason("BILLING_DISABLED")), QUOTA, "balance"),
    ("Gemini, its API is off",
     403, google("The API has not been used in project 7 before or it is disabled.",
                 403, "PERMISSION_DENIED", reason("SERVICE_DISABLED")),
     AUTH, "permissions"),
    ("Gemini, key expired",
     400, google("API key expired. Please renew the API key.", 400,
                 "INVALID_ARGUMENT", reason("API_KEY_INVALID")), AUTH, "key"),
    ("Gemini, overloaded",
     503, google("The model is overloaded.", 503, "UNAVAILABLE"), BUSY, "Wait"),
    ("Gemini, internal",
     500, google("An internal error has occurred.", 500, "INTERNAL"),
     FAILED, "its side"),
    ("Gemini, turn order",
     400, google("Please ensure that function call turn comes immediately after a "
                 "user turn.", 400, "INVALID_ARGUMENT"), MESSAGES, "conversation"),
    ("Gemini, parts of results",
     400, google("Please ensure that the number of function response parts is equal "
                 "to the number of function call parts.", 400, "INVALID_ARGUMENT"),
     MESSAGES, "conversation"),
    ("Gemini, states",
     400, google("The specified schema produces a constraint that has too many states "
                 "for serving.", 400, "INVALID_ARGUMENT"), SCHEMA, "MCP"),
    ("Gemini, place",
     400, google("User location is not supported for the API use.", 400,
                 "FAILED_PRECONDITION"), REGION, "place"),
    ("xAI, credits",
     403, {"code": "permission-denied", "error": "Your team 1 has either used all "
           "available credits or reached its monthly spending limit."},
     QUOTA, "balance"),
    ("xAI, key",
     400, {"code": "invalid-argument", "error": "Incorrect API key provided: ab***."},
     AUTH, "key"),
    ("xAI, blocked for safety",
     403, {"code": "permission-denied", "error": "Content violates usage policies."},
     FILTER, "filter"),
    ("DashScope, free tier",
     403, error("The free tier of the model has been exhausted; disable the free tier "
                "only mode.", type="AllocationQuota.FreeTierOnly",
                code="AllocationQuota.FreeTierOnly"), QUOTA, "plan"),
    ("DashScope, overdue",
     400, error("Access denied, please make sure your account is in good standing.",
                type="Arrearage", code="Arrearage"), QUOTA, "balance"),
    ("DashScope, tokens of a minute",
     429, {"code": "Throttling.AllocationQuota", "message":
           "Allocated quota exceeded, please increase your quota limit."},
     RATE, "Wait"),
    ("DashScope, too quickly",
     429, error("Request rate increased too quickly.", code="limit_burst_rate"),
     RATE, "Wait"),
    ("DashScope, inspection",
     400, error("Output data may contain improper content.",
                code="data_inspection_failed"), FILTER, "filter"),
    ("DashScope, results missing",
     400, error('<400> InternalError.Algo.InvalidParameter: An assistant message with '
                '"tool_calls" must be followed by tool messages.',
                code="invalid_parameter_error"), MESSAGES, "conversation"),
    ("DashScope, long",
     400, error("<400> InternalError.Algo.InvalidParameter: Range of input length "
                "should be [1, 98304]", code="invalid_parameter_error"),
     LONG, "conversation"),
    ("DashScope, timeout inside",
     500, {"code": "InternalError.Timeout", "message": "The request timed out."},
     FAILED, "its side"),
    ("new-api, no quota",
     403, error("用户额度不足, 剩余额度: ￥-0.01 (request id: 1)", type="new_api_error",
                code="insufficient_user_quota"), QUOTA, "balance"),
    ("one-api, no quota",
     403, error("user quota is not enough", type="one_api_error"), QUOTA, "balance"),
    ("new-api, token used up",
     401, error("该令牌额度已用尽", type="new_api_error"), QUOTA, "balance"),
    ("new-api, token wrong",
     401, error("无效的令牌", type="new_api_error"), AUTH, "key"),
    ("new-api, no channel",
     503, error("当前分组 default 下对于模型 glm-9 无可用渠道",
                type="new_api_error"), NOT_FOUND, "model"),
    ("new-api, load",
     429, error("当前分组上游负载已饱和，请稍后再试", type="new_api_error"),
     BUSY, "Wait"),
    ("new-api, upstream broken",
     502, error("bad response status code 502", type="upstream_error",
                code="bad_response_status_code"), FAILED, "its side"),
    ("Ollama, subscription",
     403, {"error": "this model requires a subscription, upgrade for access: https://x"},
     QUOTA, "does not include"),
    ("Ollama, subscription, as Anthropic",
     403, anthropic("permission_error", "this model requires a subscription"),
     QUOTA, "does not include"),
    ("Ollama, a session",
     429, {"error": "you (joe) have reached your session usage limit, upgrade for "
           "higher limits"}, QUOTA, "plan"),
    ("Ollama, a week",
     429, {"error": "you have reached your weekly usage limit, upgrade for more"},
     QUOTA, "plan"),
    ("Ollama, unknown model",
     404, {"error": "model \"qwen9\" not found, try pulling it first"},
     NOT_FOUND, "model"),
    ("Ollama, runner",
     500, {"error": "model runner has unexpectedly stopped, this may be due to "
           "resource limitations"}, FAILED, "load it again"),
    ("Ollama, memory",
     500, {"error": "llama runner process has terminated: cudaMalloc failed: out of "
           "memory"}, RefusalKind.NO_MEMORY, "smaller"),
    ("Ollama, tools",
     400, {"error": "registry.ollama.ai/library/phi9 does not support tools"},
     NO_TOOLS, "tools"),
    ("Ollama, queue",
     503, {"error": "server busy, please try again. maximum pending requests exceeded"},
     BUSY, "Wait"),
    ("z.ai, 5 hours, in Chinese",
     429, error("已达到 5 小时的使用上限。您的限额将在 2026-05-29 07:41:44 重置。",
                code="1308"), QUOTA, "2026-05-29 07:41:44"),
    ("z.ai, 5 hours",
     429, error("Usage limit reached for 5 hour. Your limit will reset at 2026-05-29 "
                "07:41:44", code="1308"), QUOTA, "2026-05-29 07:41:44"),
    ("z.ai, a week",
     429, error("Weekly/Monthly Limit Exhausted. It will reset at "
                "2026-05-30T20:26:40Z", code="1310"), QUOTA, "reset in 48 h"),
    ("z.ai, expired plan",
     429, error("您的 GLM Coding Plan 套餐已到期，暂无法使用", code="1309"),
     QUOTA, "plan"),
    ("z.ai, concurrency",
     429, error("High concurrency usage of this API, please reduce concurrency",
                code="1302"), RATE, "Wait"),
    ("z.ai, overloaded",
     429, error("The service may be temporarily overloaded", code="1305"),
     BUSY, "Wait"),
    ("z.ai, overdue",
     429, error("您的账户已欠费，请充值后重试", code="1113"), QUOTA, "balance"),
    ("z.ai, unsafe words",
     400, error("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"),
     FILTER, "filter"),
    ("z.ai, model",
     400, error("模型不存在，请检查模型代码", code="1211"), NOT_FOUND, "model"),
    ("z.ai, token expired",
     401, error("令牌已过期或验证不正确", code="1003"), AUTH, "key"),
    ("Codex, a week",
     429, error("The usage limit has been reached", type="usage_limit_reached",
                plan_type="plus", resets_at=1780602705, resets_in_seconds=602705),
     QUOTA, "reset in 7 days"),
    ("Codex, hours, by its time only",
     429, error("The usage limit has been reached", type="usage_limit_reached",
                resets_at=1780013872), QUOTA, "reset in 4 h"),
    ("Codex, not in the plan",
     403, error("To use it, upgrade.", type="usage_not_included", plan_type="free"),
     QUOTA, "does not include"),
    ("Volcengine, a month",
     429, error("You have exceeded the monthly usage quota. It will reset at "
                "2026-06-23 23:59:59 +0800 CST.", code="AccountQuotaExceeded",
                type="TooManyRequests"), QUOTA, "reset in 26 days"),
    ("Volcengine, 5 hours",
     429, error("You have exceeded the 5-hour usage quota. It will reset at "
                "2026-05-29 07:00:00 +0800 CST.", code="AccountQuotaExceeded",
                type="TooManyRequests"), QUOTA, "reset in 3 h"),
    ("Volcengine, overdue",
     403, error("The request failed because your account has an overdue balance.",
                code="AccountOverdueError", type="Forbidden"), QUOTA, "balance"),
    ("Volcengine, tokens of a minute",
     429, error("The Tokens Per Minute (TPM) limit of the endpoint is exceeded.",
                code="RateLimitExceeded.EndpointTPMExceeded"), RATE, "Wait"),
    ("Volcengine, overloaded",
     429, error("The service is currently unable to process more.",
                code="ServerOverloaded"), BUSY, "Wait"),
    ("Volcengine, not open",
     404, error("Your account has not activated the model.", code="ModelNotOpen"),
     NOT_FOUND, "model"),
    ("Volcengine, sensitive",
     400, error("The input text may contain sensitive information.",
                code="InputTextSensitiveContentDetected"), FILTER, "filter"),
    ("MiniMax, results",
     400, anthropic("bad_request_error", "invalid params, tool result's tool id(c_1) "
                    "not found (2013)"), MESSAGES, "conversation"),
    ("MiniMax, arguments",
     400, anthropic("bad_request_error", "invalid params, invalid function arguments "
                    "json string, tool_call_id: c_1 (2013)"),
     MESSAGES, "conversation"),
    ("MiniMax, role",
     400, error("invalid params, chat content has invalid message role: system (2013)",
                type="bad_request_error"), MESSAGES, "conversation"),
    ("MiniMax, setting",
     400, error("invalid params, invalid chat setting (2013)"), PARAMETER, "parameter"),
    ("MiniMax, thinking",
     400, error("invalid params, invalid thinking.type: enabled (2013)"),
     PARAMETER, "parameter"),
    ("MiniMax, empty parameters",
     400, error("invalid params, function parameters is empty (2013)"), SCHEMA, "MCP"),
    ("MiniMax, window",
     400, error("invalid params, context window exceeds limit (2013)"),
     LONG, "conversation"),
    ("MiniMax, rate", 200, minimax(1002, "rate limit"), RATE, "Wait"),
    ("MiniMax, balance", 0, minimax(1008, "insufficient balance"), QUOTA, "balance"),
    ("MiniMax, words", 0, minimax(1027, "output new_sensitive"), FILTER, "filter"),
    ("MiniMax, unknown error", 0, minimax(1000, "unknown error"), FAILED, "its side"),
    ("MiniMax, key", 0, minimax(1004, "cookie is missing, log in again"), AUTH, "key"),
    ("MiniMax, plan",
     429, anthropic("rate_limit_error", "usage limit exceeded, 5-hour window (2056)"),
     QUOTA, "plan"),
    ("MiniMax, system",
     500, anthropic("api_error", "system error (1033)"), FAILED, "its side"),
    ("Kimi, no money",
     403, error("Your account is not active, current quota exceeded.",
                type="exceeded_current_quota_error"), QUOTA, "balance"),
    ("Kimi, clients only",
     403, error("Kimi For Coding is currently only available for Coding Agents.",
                type="access_terminated_error"), AUTH, "clients"),
    ("Kimi, busy",
     429, error("The engine is currently overloaded.", type="engine_overloaded_error"),
     BUSY, "Wait"),
    ("Kimi, concurrency",
     429, error("max organization concurrency: 3, please try again after 1 seconds",
                type="rate_limit_reached_error"), RATE, "1 s"),
    ("Copilot, allowance",
     402, error("You have no quota", code="quota_exceeded"), QUOTA, "plan"),
    ("Copilot, effort",
     400, error('reasoning_effort "high" was provided, but model m does not support '
                "reasoning effort", code="invalid_reasoning_effort"),
     PARAMETER, "parameter"),
    ("Anthropic, effort",
     400, anthropic(INVALID, "This model does not support effort level 'xhigh'."),
     PARAMETER, "parameter"),
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
    ("Anthropic, credits",
     400, anthropic(INVALID, "Your credit balance is too low to access the API."),
     QUOTA, "balance"),
    ("Anthropic, limit of spending",
     400, anthropic(INVALID, "You have reached your specified API usage limits. You "
                    "will regain access on 2026-06-01 at 00:00 UTC."), QUOTA, "plan"),
    ("Anthropic, internal", 500, anthropic("api_error", "Internal server error"),
     FAILED, "its side"),
    ("Anthropic, overloaded in a stream",
     0, anthropic("overloaded_error", "Overloaded"), BUSY, "Wait"),
    ("Anthropic, picture",
     400, anthropic(INVALID, "messages.0.content.1.image: Could not process image"),
     MESSAGES, "attachment"),
    ("OpenAI, no output",
     400, error("No tool output found for function call c_1.", type=INVALID,
                param="input"), MESSAGES, "conversation"),
    ("OpenAI, no call",
     400, error("No tool call found for function call output with call_id c_1.",
                type=INVALID, param="input"), MESSAGES, "conversation"),
    ("OpenAI, reasoning without its item",
     400, error("Item 'rs_1' of type 'reasoning' was provided without its required "
                "following item.", type=INVALID, param="input"),
     MESSAGES, "conversation"),
    ("OpenAI, server",
     500, error("The server had an error while processing your request.",
                type="server_error"), FAILED, "its side"),
    ("OpenAI, server in a stream",
     0, error("An error occurred while processing your request.",
              type="server_error", code="server_error"), FAILED, "its side"),
    ("OpenAI, not active",
     429, error("Your account is not active, please check your billing details.",
                code="billing_not_active"), QUOTA, "balance"),
    ("OpenAI, tokens of a minute",
     429, error("Rate limit reached for m on tokens per min (TPM): Limit 30000. Please "
                "try again in 6m0s.", code="rate_limit_exceeded"), RATE, "6 min"),
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
    ("SiliconFlow, busy",
     503, {"code": 50505, "message": "Model service overloaded. Try again later."},
     BUSY, "Wait"),
    ("OpenRouter, credits",
     402, error("Insufficient credits. Add more on the settings page.", code=402),
     QUOTA, "balance"),
    ("OpenRouter, free models of a day",
     429, error("Rate limit exceeded: free-models-per-day. Add 10 credits.", code=429),
     QUOTA, "day"),
    ("OpenRouter, provider behind it",
     502, error("Provider returned error", code=502,
                metadata={"raw": '{"error":{"message":"boom"}}'}), FAILED, "its side"),
    ("OpenRouter, moderation",
     403, error("Input was flagged: harassment", code=403,
                metadata={"reasons": ["harassment"]}), FILTER, "filter"),
    ("Groq, day",
     429, error("Rate limit reached on tokens per day (TPD): Limit 100000. Please try "
                "again in 7h12m.", type="tokens", code="rate_limit_exceeded"),
     QUOTA, "reset in 8 h"),
    ("Mistral, capacity",
     429, {"object": "error", "message": "Service tier capacity exceeded for this "
           "model.", "type": "service_tier_capacity_exceeded", "code": "3505"},
     BUSY, "Wait"),
    ("Mistral, monthly",
     402, {"detail": "You have reached your monthly usage limit."}, QUOTA, "plan"),
    ("LM Studio, unloaded", 400, {"error": "Model is unloaded."}, NOT_FOUND, "Load"),
    ("LM Studio, crashed",
     400, {"error": "The model has crashed without additional information. (Exit "
           "code: 6)"}, FAILED, "load it again"),
    ("Cloudflare, blocked",
     403, PAGE.format("Attention Required! | Cloudflare", "/cdn-cgi/styles/cf.css"),
     REGION, "firewall"),
    ("Cloudflare, challenge",
     403, PAGE.format("Just a moment...", "cdn-cgi"), REGION, "firewall"),
    ("nginx, 502", 502, PAGE.format("502 Bad Gateway", "nginx"), FAILED, "its side"),
    ("nginx, 504", 504, PAGE.format("504 Gateway Time-out", ""), FAILED, "its side"),
    ("Cloudflare, 520", 520, "error code: 520", FAILED, "its side"),
    ("an empty 500", 500, "", FAILED, "its side"),
    ("Russian, money", 403, error("Недостаточно средств на балансе"), QUOTA, "balance"),
    ("Spanish, money", 402, error("Saldo insuficiente"), QUOTA, "balance"),
    ("Japanese, rate", 400, error("リクエストが多すぎます"), RATE, "Wait"),
    ("German, busy", 500, error("Der Dienst ist überlastet."), BUSY, "Wait"),
    ("Chinese, frequency", 400, error("请求过于频繁，请稍后再试"), RATE, "Wait"),
    ("Chinese, long", 400, error("输入内容过长，超出模型最大长度限制"),
     LONG, "conversation"),
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
