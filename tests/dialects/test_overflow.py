"""The numbers in the refusals of conversations that are too long."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from byok.core.errors import ContextLengthExceeded, UpstreamRefused
from byok.dialects import rate_limits
from byok.dialects.error_bodies import refusal_of
from byok.dialects.rate_limits import Overflow, overflow_of
from tests.fakes.replay import bytes_of, recorded
from tests.fakes.values import VALUES

W, C = 32_768, 40_123
# What upstreams say of a window of 32,768 tokens and a prompt of 40,123 tokens.
TOLD: dict[str, tuple[str, Overflow]] = {
    "OpenAI": (
        "This model's maximum context length is 32768 tokens. However, your messages "
        "resulted in 40123 tokens (39000 in the messages, 1123 in the functions). "
        "Please reduce the length of the messages or functions.",
        Overflow(W, C),
    ),
    "OpenAI, without tools": (
        "This model's maximum context length is 32768 tokens. However, your messages "
        "resulted in 40123 tokens.",
        Overflow(W, C),
    ),
    "OpenAI, with the answer": (
        "This model's maximum context length is 32768 tokens. However, you requested "
        "44123 tokens (40123 in the messages, 4000 in the completion).",
        Overflow(W, C),
    ),
    "OpenAI, without numbers": (
        "Your input exceeds the context window of this model. Please adjust it.",
        Overflow(),
    ),
    "vLLM": (
        "This model's maximum context length is 32768 tokens. However, you requested "
        "4096 output tokens and your prompt contains at least 40123 input tokens, for "
        "a total of at least 44219 tokens.",
        Overflow(W, C),
    ),
    "vLLM, cap": (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's "
        "maximum context length is 32768 tokens and your request has 40123 input "
        "tokens (4096 > 32768 - 40123).",
        Overflow(W, C),
    ),
    "OpenRouter": (
        "This endpoint's maximum context length is 32768 tokens. However, you "
        "requested about 44123 tokens (40123 of text input, 4000 in the output).",
        Overflow(W, C),
    ),
    "DeepSeek": (
        "This model's maximum context length is 32768 tokens. However, you requested "
        "44123 tokens (40123 in the messages, 4000 in the completion).",
        Overflow(W, C),
    ),
    "Anthropic": ("prompt is too long: 40123 tokens > 32768 maximum", Overflow(W, C)),
    "Anthropic, with the answer": (
        "input length and `max_tokens` exceed context limit: 40123 + 8192 > 32768, "
        "decrease input length or `max_tokens` and try again",
        Overflow(W, C),
    ),
    "Gemini": (
        "The input token count (40123) exceeds the maximum number of tokens allowed "
        "(32768).",
        Overflow(W, C),
    ),
    "Gemini, older": (
        "The input token count exceeds the limit: the model only supports up to 32768",
        Overflow(W),
    ),
    "Mistral": (
        "Prompt contains 40123 tokens and 0 draft tokens, too large for model with "
        "32768 maximum context length",
        Overflow(W, C),
    ),
    "Together": (
        "The input (40123 tokens) is longer than the model's context length (32768 "
        "tokens).",
        Overflow(W, C),
    ),
    "SGLang": (
        "Requested token count exceeds the model's maximum context length of 32768 "
        "tokens.",
        Overflow(W),
    ),
    "xAI": (
        "This model's maximum prompt length is 32768 but the request contains 40123 "
        "tokens.",
        Overflow(W, C),
    ),
    "Kimi": (
        "Invalid request: Your request exceeded model token limit: 32768",
        Overflow(W),
    ),
    "DashScope": ("Range of input length should be [1, 32768]", Overflow(W)),
    "Copilot": (
        "prompt token count of 40123 exceeds the limit of 32768",
        Overflow(W, C),
    ),
    "Cohere": (
        "too many tokens: size limit exceeded by 7355 tokens. Try using shorter or "
        "fewer inputs. The limit for this model is 32768 tokens.",
        Overflow(W),
    ),
    "llama.cpp": (
        "request (40123 tokens) exceeds the available context size (32768 tokens), "
        "try increasing it",
        Overflow(W, C),
    ),
    "llama-cpp-python": (
        "Requested tokens (40123) exceed context window of 32768",
        Overflow(W, C),
    ),
    "LM Studio": (
        "The number of tokens to keep from the initial prompt is greater than the "
        "context length (n_keep: 40123>= n_ctx: 32768). Try a larger context length.",
        Overflow(W),
    ),
    "LM Studio, loaded": (
        "Trying to keep the first 40123 tokens when context the overflows. However, "
        "the model is loaded with context length of only 32768 tokens",
        Overflow(W),
    ),
    "OpenAI, reasoning": (
        "Input tokens exceed the configured limit of 32768 tokens. Your messages "
        "resulted in 40123 tokens. Please reduce the length of the messages.",
        Overflow(W, C),
    ),
    "Kimi, counted": (
        "Your request exceeded model token limit: 32768 (requested: 40123)",
        Overflow(W, C),
    ),
    "GitHub": (
        "Request body too large for gpt-4o model. Max size: 32768 tokens.",
        Overflow(W),
    ),
    "SiliconFlow": (
        "length of prompt_tokens (40123) must be less than max_seq_len (32768).",
        Overflow(W, C),
    ),
    "TGI": (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. "
        "Given: 40123 `inputs` tokens and 100 `max_new_tokens`",
        Overflow(W, C),
    ),
    "TGI, without an answer": (
        "`inputs` must have less than 32768 tokens. Given: 40123",
        Overflow(W),
    ),
    "Volcengine": (
        "Input length 40123 exceeds the maximum length 32768",
        Overflow(W, C),
    ),
    "Fireworks": (
        "The prompt is too long: 40123, model maximum context length: 32768",
        Overflow(W, C),
    ),
    "Cerebras": (
        "Please reduce the length of the messages or completion. Current length is "
        "40123 while limit is 32768",
        Overflow(W, C),
    ),
    "TensorRT-LLM": (
        "Prompt length (40123) exceeds maximum input length (32768)",
        Overflow(W, C),
    ),
    "watsonx": (
        "the number of input tokens 40123 cannot exceed the total tokens limit 32768 "
        "for this model",
        Overflow(W, C),
    ),
    "Z.ai": ("Prompt exceeds max length", Overflow()),
    "Cloudflare": (
        "The estimated number of input and maximum output tokens (44123) exceeded this "
        "model context window limit (32768).",
        Overflow(W),
    ),
    "commas": ("maximum context length is 32,768 tokens", Overflow(W)),
    # Here is no number to be read, or one that means something else.
    "Ollama": ("input length exceeds the context length", Overflow()),
    "Ollama, not cut": (
        "prompt too long; exceeded max context length by 7355 tokens",
        Overflow(),
    ),
    "Groq": ("Please reduce the length of the messages or completion.", Overflow()),
    "GLM": ("model_context_window_exceeded", Overflow()),
    "MiniMax": ("invalid params, context window exceeds limit (2013)", Overflow()),
    "Bedrock": ("Input is too long for requested model.", Overflow()),
    "a batch": ("increase the physical batch size (current: 512)", Overflow()),
    "nonsense": ("maximum context length is 7 tokens", Overflow()),
    "a long number": (f"maximum context length is {'9' * 3000} tokens", Overflow()),
}


@pytest.mark.parametrize(("text", "told"), TOLD.values(), ids=TOLD)
def test_context_overflow_error_carries_the_numbers(text: str, told: Overflow) -> None:
    error = refusal_of({"error": {"message": text}}, 400)
    assert isinstance(error, ContextLengthExceeded)
    assert (error.window, error.counted) == (told.window, told.counted)


def test_context_overflow_fields_win_over_words() -> None:
    error = {"message": "Too long.", "n_ctx": W, "n_prompt_tokens": C}
    told = refusal_of({"error": {**error, "type": "exceed_context_size_error"}}, 400)
    assert isinstance(told, ContextLengthExceeded)
    assert (told.window, told.counted) == (W, C)


def test_context_overflow_is_no_rate_limit_that_names_the_context_length() -> None:
    text = "Rate limit reached on tokens per min: maximum context length is 32768"
    error = refusal_of({"error": {"message": text}}, 429)
    assert type(error) is UpstreamRefused


@given(VALUES, VALUES)
def test_context_overflow_fields_may_hold_anything(one: Any, other: Any) -> None:
    told = overflow_of("", {"n_ctx": one, "n_prompt_tokens": other})
    assert all(n is None or 64 <= n < 2**31 for n in (told.window, told.counted))


ROWS = [
    (name, row) for name in ("_WINDOW", "_COUNTED") for row in vars(rate_limits)[name]
]


@pytest.mark.shared
def test_recorded_overflows_tell_their_windows(shared: Path) -> None:
    expected = {
        "anthropic": (200_000, 3_333_404),
        "cohere": (288_000, None),
        "llamacpp": (512, 2009),
        "openai": (None, None),
        "vertex": (1_048_576, 1_250_074),
    }
    found = {}
    for item in recorded(shared, "error"):
        if "context-length" in item["id"] or "context-overflow" in item["id"]:
            error = refusal_of(json.loads(bytes_of(shared, item)), item["status"])
            assert isinstance(error, ContextLengthExceeded)
            found[item["provider"]] = (error.window, error.counted)
    assert found == {name: expected[name] for name in found}
    assert len(found) >= 4
