"""The table of refusals: each vendor's words have a class, and no other one."""

import pytest

from byok.dialects.refusals import class_of
from tests.fakes.linear import check_linear

CONTEXT = {
    "Ollama": "input length exceeds the context length",
    "Ollama, not cut": "prompt too long; exceeded max context length by 9 tokens",
    "Ollama, not shifted": "the prompt is longer than the context length currently "
    "available to the model",
    "Z.ai, in Chinese": "Prompt 超长",
    "Cloudflare": "The estimated number of input and maximum output tokens (9) "
    "exceeded this model context window limit (5)",
    "llama.cpp": "request (9 tokens) exceeds the available context size (5 tokens)",
    "llama.cpp's type": "Sorry. exceed_context_size_error",
    "vLLM": "This model's maximum context length is 5 tokens. However, you requested 9",
    "SGLang": "The input is longer than the model's context length",
    "LM Studio": "tokens to keep from the initial prompt is greater than the context "
    "length",
    "OpenAI": "Your input exceeds the context window of this model.",
    "OpenAI's code": "Sorry. context_length_exceeded",
    "OpenRouter": "This endpoint's maximum context length is 5 tokens.",
    "Anthropic": "prompt is too long: 9 tokens > 5 maximum",
    "Anthropic, with the answer": "input length and `max_tokens` exceed context limit",
    "Gemini": "The input token count (9) exceeds the maximum number of tokens allowed",
    "DeepSeek": "maximum context length is 5 tokens",
    "Groq": "Please reduce the length of the messages or completion.",
    "Mistral": "Prompt contains 9 tokens, too large for model with 5 maximum context "
    "length",
    "Together": "The input (9 tokens) is longer than the model's context length (5)",
    "xAI": "This model's maximum prompt length is 5 but the request contains 9 tokens.",
    "Kimi": "Invalid request: Your request exceeded model token limit: 5",
    "GLM": "model_context_window_exceeded",
    "Qwen": "Range of input length should be [1, 5]",
    "Copilot": "prompt token count of 9 exceeds the limit of 5",
    "Cohere": "too many tokens: size limit exceeded by 4 tokens.",
    "Bedrock": "Input is too long for requested model.",
    "Bedrock, characters": "expected maxLength: 300000, actual: 310000",
    "Bedrock, Nova": "Input Tokens Exceeded: number of input tokens exceeds 5",
    "OpenAI, reasoning": "Input tokens exceed the configured limit of 5 tokens.",
    "Z.ai": "Prompt exceeds max length",
    "Baidu": "prompt tokens too long",
    "GitHub": "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "GitHub's code": "Sorry. tokens_limit_reached",
    "SiliconFlow": "length of prompt_tokens (9) must be less than max_seq_len (5)",
    "TGI": "`inputs` tokens + `max_new_tokens` must be <= 5. Given: 9 `inputs` tokens",
    "TGI, without an answer": "`inputs` must have less than 5 tokens. Given: 9",
    "Volcengine": "Input length 9 exceeds the maximum length 5",
    "Volcengine, pictures": "Total tokens of image and text exceed max message tokens",
    "TensorRT-LLM": "Prompt length (9) exceeds maximum input length (5)",
}
OTHERS = {
    # Limits of rate speak of tokens, and are no question of the context's length.
    ("Rate limit reached on tokens per min (TPM): Limit 5", "upstream_rate_limit"),
    ("Request too large on tokens per minute (TPM)", "upstream_rate_limit"),
    ("Too many tokens, please wait before trying again.", "upstream_rate_limit"),
    ("It would exceed your rate limit of 5 input tokens", "upstream_rate_limit"),
    ("ThrottlingException: too many tokens", "upstream_rate_limit"),
    ("Too Many Requests", "upstream_rate_limit"),
    ("server busy, please try again.  maximum pending", "upstream_overloaded"),
    ("but model does not support multimodal requests", "upstream_no_images"),
    ("RESOURCE_EXHAUSTED", "upstream_rate_limit"),
    ("5 requests per day", "upstream_quota"),
    ("Rate limit reached on tokens per day (TPD)", "upstream_quota"),
    ("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "upstream_quota"),
    ("You have reached your daily limit", "upstream_quota"),
    ("5 requests per minute", "upstream_rate_limit"),
    ("Request too large on tokens per min", "upstream_rate_limit"),
    ("Resource has been exhausted (e.g. check quota).", "upstream_rate_limit"),
    ("You exceeded your current quota. Please retry in 5.1s.", "upstream_rate_limit"),
    ("No deployments available, Try again in 5 seconds.", "upstream_rate_limit"),
    ("You exceeded your current quota", "upstream_quota"),
    ("insufficient_quota", "upstream_quota"),
    ("Insufficient Balance", "upstream_quota"),
    ("This request requires more credits, or fewer max_tokens.", "upstream_quota"),
    ("Your credit balance is too low", "upstream_quota"),
    ("Your team reached its monthly spending limit", "upstream_quota"),
    ("Please check your plan and billing details", "upstream_quota"),
    ("Arrearage", "upstream_quota"),
    ("Overloaded", "upstream_overloaded"),
    ("The model is overloaded. Please try again later.", "upstream_overloaded"),
    ("engine_overloaded_error", "upstream_overloaded"),
    ("This model is currently experiencing high demand.", "upstream_overloaded"),
    ("The model is over capacity", "upstream_overloaded"),
    ("insufficient_system_resource", "upstream_overloaded"),
    ("Service temporarily unavailable", "upstream_overloaded"),
    ("No. 503 UNAVAILABLE", "upstream_overloaded"),
    ("Our servers are too busy", "upstream_overloaded"),
    ("service_tier_capacity_exceeded", "upstream_overloaded"),
    ("slow_down", "upstream_overloaded"),
    ("Loading model", "upstream_loading"),
    ("too large to process. increase the physical batch size", "context_length"),
    ("Country, region, or territory not supported", "upstream_region"),
    ("unsupported_country_region_territory", "upstream_region"),
    ("It is not available in your region", "upstream_region"),
    ("User location is not supported for the API use.", "upstream_region"),
    ("Azure OpenAI's content management policy", "upstream_content_filter"),
    ("content_policy_violation", "upstream_content_filter"),
    ("data_inspection_failed", "upstream_content_filter"),
    ("ResponsibleAIPolicyViolation", "upstream_content_filter"),
    ("Input data may contain inappropriate content.", "upstream_content_filter"),
    ("registry/library/gemma:2b does not support tools", "upstream_no_tools"),
    ("No endpoints found that support tool use.", "upstream_no_tools"),
    ("No endpoints found that support the 'tool_choice' value", "upstream_no_tools"),
    ('"auto" tool choice requires --enable-auto-tool-choice', "upstream_no_tools"),
    ("tools param requires --jinja flag", "upstream_no_tools"),
    ("`tool calling` is not supported with this model", "upstream_no_tools"),
    ("It does not support function calling", "upstream_no_tools"),
    ("Function calling is not enabled for this model", "upstream_no_tools"),
    ("Parallel tool calling is not supported.", "upstream_refused"),
    ("Thinking mode does not support this tool_choice", "upstream_bad_parameter"),
    ("tool_use_failed", "upstream_tool_failed"),
    ("Tool choice is required, but model did not call a tool", "upstream_tool_failed"),
    ("Failed to call a function.", "upstream_tool_failed"),
    ("this model does not support image input", "upstream_no_images"),
    ("No endpoints found that support image input", "upstream_no_images"),
    ("It does not support images", "upstream_no_images"),
    ("This model does not support image type image/heic", "upstream_refused"),
    ("It does not support image URLs, only base64", "upstream_refused"),
    ("It does not support images of type image/bmp", "upstream_refused"),
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
    ("CUDA out of memory", "upstream_no_memory"),
    ("The requested model 'x' does not exist.", "upstream_not_found"),
    ("Model not found: x", "upstream_not_found"),
    ("model 'x' not found", "upstream_not_found"),
    ("models/x is not found for API version v1beta", "upstream_not_found"),
    ("x is not a valid model ID", "upstream_not_found"),
    ("model_not_supported", "upstream_not_found"),
    ("unsupported_api_for_model", "upstream_wrong_api"),
    ("The provided model identifier is invalid.", "upstream_not_found"),
    ("Server is pinned to x", "upstream_not_found"),
    ("Invalid model name passed in model=x.", "upstream_not_found"),
    ("There are no healthy deployments for this model", "upstream_not_found"),
    ("No models loaded. Please load a model.", "upstream_not_found"),
    ("DeploymentNotFound", "upstream_not_found"),
    ("API key not valid. Please pass a valid API key.", "upstream_auth"),
    ("invalid x-api-key", "upstream_auth"),
    ("Invalid API Key", "upstream_auth"),
    ("API_KEY_INVALID", "upstream_auth"),
    ("Unauthorized", "upstream_auth"),
    ("UNAUTHENTICATED", "upstream_auth"),
    ("authentication_error", "upstream_auth"),
    ("Bad request", "upstream_refused"),
    ("messages: at least one is required", "upstream_refused"),
    ("In the context of this request, no", "upstream_refused"),
    # About something else than the length of the context.
    ("Invalid value for 'context_window_mode'", "upstream_bad_parameter"),
    ("Extra usage is required for long prompts.", "upstream_quota"),
    ("No endpoints found matching your data policy", "upstream_not_found"),
    ("It is only supported in v1/responses", "upstream_wrong_api"),
    ("It is not accessible via the /chat/completions path", "upstream_wrong_api"),
    ("This is not a chat model", "upstream_wrong_api"),
    ("For that, use /v1/responses", "upstream_wrong_api"),
    ("A thought_signature is missing", "upstream_bad_messages"),
    ("A message must start with a thinking block", "upstream_bad_messages"),
    ("reasoning_content is missing at index 2", "upstream_bad_messages"),
    ("reasoning_content must be passed back", "upstream_bad_messages"),
    ("Gemini wants reasoning details to be preserved", "upstream_bad_messages"),
    ("invalid_request_message_order", "upstream_bad_messages"),
    ("Unexpected role 'user' after role 'tool'", "upstream_bad_messages"),
    ("Conversation roles must alternate", "upstream_bad_messages"),
    ("tool_call_id c1 has no answer", "upstream_bad_messages"),
    ("max_tokens: 9 > 5, which is the maximum", "upstream_bad_parameter"),
    ("messages[3]: unknown variant `input_audio`", "upstream_bad_messages"),
    ("#/messages/2/content/0: extraneous key", "upstream_bad_messages"),
    ("error: cannot make GET request", "upstream_bad_messages"),
    ("It doesn't support the s3Uri field", "upstream_bad_messages"),
    ("Unknown parameter: 'response_format'", "upstream_bad_parameter"),
    ("It does not support parameter presencePenalty", "upstream_refused"),
    ("The parameter seed is not supported", "upstream_bad_parameter"),
    ("seed: Extra inputs are not permitted", "upstream_bad_parameter"),
    ("temperature: only 1 is allowed", "upstream_bad_parameter"),
    ("Logprobs are not enabled", "upstream_bad_parameter"),
    ("Cannot use both json_schema and grammar", "upstream_bad_parameter"),
    ("This does not support the context length extension header", "upstream_refused"),
    ("too many tokens in tool name", "upstream_refused"),
    ("Image too large: context size 5 MB", "upstream_too_large"),
    ("image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", "upstream_too_large"),
    ("One of the image dimensions exceed max allowed size", "upstream_too_large"),
    ("context limit of tools exceeded: at most 128 tools", "upstream_too_many_tools"),
    ("Invalid 'tools': array too long. Expected 128", "upstream_too_many_tools"),
    ("'tools' : maximum number of items is 128", "upstream_too_many_tools"),
    ("You may not include more than 128 tools", "upstream_too_many_tools"),
    ("At most 512 function declarations can be specified", "upstream_too_many_tools"),
    ("Anthropic expects the `tools=` param to be passed in", "upstream_needs_tools"),
    ("tools: Field required", "upstream_needs_tools"),
    ("The toolConfig field must be defined when using toolUse", "upstream_needs_tools"),
    (
        "Requests which include `tool_use` blocks must define tools",
        "upstream_needs_tools",
    ),
    ("invalid JSON schema for tool x", "upstream_bad_schema"),
    ("parameters is not a valid moonshot flavored json schema", "upstream_bad_schema"),
    ("Schema validation failed: /properties/a", "upstream_bad_schema"),
    ("JSON Schema not supported: could not understand", "upstream_bad_schema"),
    ("`x` functionDeclaration `parameters.a` schema is wrong", "upstream_bad_schema"),
    ("tools[50].function.parameters must be valid JSON", "upstream_bad_schema"),
    ("Unknown Model, please check the model code.", "upstream_not_found"),
    ("modelCode: does not exist", "upstream_not_found"),
    ("[1211][模型不存在，请检查模型代码。]", "upstream_not_found"),
    ("Invalid model: mistral-tall", "upstream_not_found"),
    ("invalid_model", "upstream_not_found"),
    ("Model Not Exist", "upstream_not_found"),
    (
        "The supported API model names are a or b, but you passed c",
        "upstream_not_found",
    ),
    ("Invocation of x with on-demand throughput isn't supported", "upstream_not_found"),
    ("Could not resolve the foundation model from x", "upstream_not_found"),
    ("You don't have access to the model with that ID", "upstream_not_found"),
    ("The model 'x' has reached its end of life", "upstream_not_found"),
    ("", "upstream_refused"),
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
