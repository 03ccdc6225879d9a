"""Error bodies: always one sentence, with a code and a cure where they are known."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.errors import ContextLengthExceeded, UpstreamRefused
from byok.dialects.error_bodies import error_text, refusal_of
from byok.dialects.rate_limits import (
    overflow_of,
    quotas_exceeded,
    read_retry_after,
    requested_wait,
    wait_in_words,
)
from tests.fakes.clock import check_linear
from tests.fakes.replay import bytes_of, recorded
from tests.fakes.values import VALUES


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        pytest.param(
            {"error": {"message": "No.", "type": "t", "code": "c"}},
            "No.",
            "c",
            id="OpenAI",
        ),
        pytest.param(
            {"type": "error", "error": {"type": "t", "message": "No."}},
            "No.",
            "t",
            id="Anthropic",
        ),
        pytest.param(
            [{"error": {"code": 400, "message": "No.", "status": "S"}}],
            "No.",
            "S",
            id="Gemini's list",
        ),
        pytest.param({"error": "No."}, "No.", "", id="a bare text"),
        pytest.param({"detail": "No."}, "No.", "", id="detail"),
        pytest.param(
            {"detail": [{"msg": "No.", "loc": ["body", "seed", 0]}, {"msg": "Nor."}]},
            "body.seed.0: No.; Nor.",
            "",
            id="a list of details",
        ),
        pytest.param(
            {"statusCode": 400, "error": "Bad Request", "message": "No."},
            "Bad Request: No.",
            "",
            id="a status in words before it",
        ),
        pytest.param(
            {
                "error": {
                    "message": "Error from x: Provider returned error",
                    "metadata": {"raw": '{"error": {"message": "No."}}'},
                }
            },
            "No.",
            "",
            id="a router with the provider's JSON",
        ),
        pytest.param(
            {"error": {"message": "Param Incorrect", "param": "No, not so."}},
            "Param Incorrect: No, not so.",
            "",
            id="Xiaomi",
        ),
        pytest.param({}, "", "", id="an empty object"),
        pytest.param(7, "", "", id="a number"),
    ],
)
def test_error_body_message_is_found(body: Any, message: str, code: str) -> None:
    assert error_text(body) == (message, code)


@pytest.mark.parametrize("field", ["code", "type", "status"])
def test_error_body_code_tells_as_much_as_the_message(field: str) -> None:
    body = {"error": {"message": "Sorry", field: "context_length_exceeded"}}
    assert refusal_of(body, 400).code == "context_length"


@pytest.mark.parametrize(
    ("fields", "message", "code"),
    [
        ({"code": "c", "type": "t"}, "model not found", "c"),
        ({"code": 404, "type": "t"}, "model not found", ""),
        ({"type": "t"}, "model not found", ""),
        ({"code": 400, "type": "t"}, "Sorry", "t"),
        ({}, "Sorry", ""),
    ],
)
def test_error_body_type_is_the_upstream_code_by_default(
    fields: dict[str, Any], message: str, code: str
) -> None:
    error = refusal_of({"error": {"message": message, **fields}}, 400)
    assert error.upstream_code == code


def test_error_body_status_inside_a_stream_gives_the_class() -> None:
    error = refusal_of({"error": {"message": "Sorry", "code": 429}})
    assert (error.code, error.upstream_status) == ("upstream_rate_limit", 0)


def test_error_body_words_behind_the_cut_still_give_the_class() -> None:
    error = refusal_of({"error": {"message": f"{'So ' * 200}out of memory"}}, 500)
    assert error.code == "upstream_no_memory"
    assert "memory" not in str(error)


@pytest.mark.parametrize(
    ("status", "retry_after", "passed_on"),
    [(429, 7.0, 429), (429, 0.0, 429), (429, None, 422), (503, 7.0, 422)],
)
@pytest.mark.case("F09")
def test_error_body_status_429_needs_a_retry_after(
    status: int, retry_after: float | None, passed_on: int
) -> None:
    error = refusal_of({"error": "Slow down"}, status, retry_after)
    assert error.status == passed_on
    assert error.retry_after == retry_after


def test_error_body_retry_after_header_wins() -> None:
    body = {"error": {"message": "Rate limit reached. Please try again in 20s."}}
    assert refusal_of(body, 429).retry_after == 20.0
    error = refusal_of(body, 429, 7.5)
    assert error.retry_after == 7.5
    assert error.hint == "Wait 8 s and try again."


def test_error_body_inside_the_text_of_another_is_read() -> None:
    inner = {
        "code": 400,
        "message": "request (24054 tokens) exceeds the available context size (4096 "
        "tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 24_054,
        "n_ctx": 4096,
    }
    text = json.dumps({"error": inner})
    bodies: list[Any] = [{"error": text}, {"error": {"message": text, "code": 400}}]
    for body in (*bodies, f"data:{text}", f"event: error\r\ndata: {text}\r\n\r\n"):
        error = refusal_of(body, 400)
        assert isinstance(error, ContextLengthExceeded)
        assert (error.window, error.counted) == (4096, 24_054)
        assert '"' not in error.message
    for words in ("{not JSON", "plain", ""):
        assert words in refusal_of({"error": words}, 500).message


def test_error_body_that_is_a_web_page_is_shown_by_its_title() -> None:
    page = "<html><head><title>502 Bad &amp; Gateway</title></head></html>"
    assert "a web page: 502 Bad & Gateway." in refusal_of(page, 502).message
    assert "a web page." in refusal_of("<html>Bad</html>", 502).message


def check_sentence(error: UpstreamRefused) -> None:
    sentence = error.sentence
    assert len(str(error)) > 10
    assert len(sentence) <= 420
    assert sentence == " ".join(sentence.split())
    assert str(error).endswith((".", "?", "!", "…"))


NESTED: Any = "No."
for _ in range(1015):
    NESTED = [NESTED]


@settings(max_examples=150)
@given(
    VALUES
    | st.fixed_dictionaries({"error": VALUES})
    | st.fixed_dictionaries(
        {"error": st.fixed_dictionaries({"message": VALUES, "code": VALUES})}
    ),
    st.sampled_from([0, 400, 401, 404, 429, 500]),
)
def test_error_body_of_any_json_becomes_one_short_sentence(
    body: Any, status: int
) -> None:
    check_sentence(refusal_of(body, status))


def test_error_body_of_recorded_refusals_becomes_one_short_sentence(
    shared: Path,
) -> None:
    files = sorted((shared / "streams" / "error").iterdir())
    assert files
    for file in files:
        text = file.read_text("utf-8", "replace")
        try:
            body = json.loads(text)
        except ValueError:
            body = text
        error = refusal_of(body, 400)
        check_sentence(error)
        assert "no reason given" not in str(error), file.name


def test_endless_names_of_quotas_take_linear_time() -> None:
    def read(count: int) -> None:
        quota = {"quotaId": "input tokens " * count}
        details = [{"violations": [quota]}]
        refusal_of({"error": {"message": "x", "details": details}})

    check_linear(read, 8000)


# How long a refusal asks to wait, and for which quota, in the words of vendors


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please retry in 36.206s.", 36.206),
        ("Please try again in 1m26.4s.", 86.4),
        ("try again in 2h5m", 7500.0),
        ("Please retry after 26 seconds.", 26.0),
        ("Try again in 2 minutes", 120.0),
        ("Try it again in 250 milliseconds", 0.25),
        ("Please wait 2 hours and 5 minutes before you ask", 7500.0),
        ("Limit resets in about 12s", 12.0),
        ("Your quota is available again in 1 day", 86400.0),
        ("They await 5 s", None),
        ("Retry in a moment", None),
        ("Limit 30000, used 29000", None),
    ],
)
def test_rate_limit_wait_is_read_from_the_sentence(
    message: str, seconds: float | None
) -> None:
    assert requested_wait(message, {}) == (seconds and pytest.approx(seconds))


@pytest.mark.parametrize(
    ("delay", "seconds"), [("36s", 36.0), ("0.5s", 0.5), ("90.25s", 90.25), ("x", None)]
)
def test_rate_limit_retry_info_of_google_wins_over_the_sentence(
    delay: str, seconds: float | None
) -> None:
    error = {"details": [{"@type": "Help"}, {"retryDelay": delay}]}
    assert requested_wait("Please retry in 7s.", error) == seconds


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"retry_after": 2.5}, 2.5),
        ({"retryAfter": "9"}, 9.0),
        ({"metadata": {"retry_after_seconds": 12}}, 12.0),
        ({"retry_after": True, "metadata": "x"}, 7.0),
        ({"retry_after": 1e300}, 7.0),
    ],
)
def test_rate_limit_wait_may_be_a_field_of_the_error(
    error: Any, seconds: float
) -> None:
    assert requested_wait("Please retry in 7s.", error) == seconds


@pytest.mark.parametrize(
    ("at", "seconds"),
    [
        (1_445_412_540, 60.0),
        ("1445412540000", 60.0),
        ("2015-10-21T07:29:00Z", 60.0),
        ("2015-10-21 07:29:00 UTC", 60.0),
        ("2015-10-21 09:29:00 +0200", 60.0),
        ("2015-10-21T07:29:00", None),
        (7, None),
        (True, None),
        ("soon", None),
    ],
)
def test_rate_limit_reset_is_a_time_with_a_zone(at: Any, seconds: float | None) -> None:
    assert requested_wait("", {"resets_at": at}, NOW) == seconds


def test_rate_limit_wait_is_said_in_its_largest_unit() -> None:
    waits = [wait_in_words(s) for s in (0.2, 36, 119, 120, 7200, 500_000)]
    assert waits == ["1 s", "36 s", "119 s", "2 min", "2 h", "6 days"]


def test_rate_limit_names_every_exhausted_quota() -> None:
    ids = ["GenerateRequestsPerDay-FreeTier", "InputTokensPerMinute"]
    violations = [*({"quotaId": quota} for quota in ids), {}, 5]
    error = {"details": [{"violations": violations}, None]}
    assert quotas_exceeded(error) == " ".join(ids)
    assert quotas_exceeded({"details": "x"}) == ""


@given(VALUES, VALUES)
def test_rate_limit_details_may_be_any_json(error: Any, detail: Any) -> None:
    for found in (error, {"details": error}, {"details": [detail]}):
        assert isinstance(quotas_exceeded(found), str)
        wait = requested_wait("", found)
        assert wait is None or wait >= 0


NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        ("1.5", 1.5),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:27:30 GMT", 0.0),
        ("abc", None),
        ("-5", None),
        ("1.2.3", None),
        (".", None),
        ("", None),
        ("nan", None),
        ("9" * 400, None),
        ("Wed, 99 Oct 2015 07:28:30 GMT", None),
    ],
)
@pytest.mark.case("F09")
def test_retry_after_is_read(value: str, seconds: float | None) -> None:
    assert read_retry_after({"retry-after": value}, NOW) == seconds


@pytest.mark.parametrize(
    ("milliseconds", "seconds"),
    [("1500", 1.5), ("250.5", 0.2505), ("soon", 7.0), ("", 7.0)],
)
def test_retry_after_ms_is_more_exact(milliseconds: str, seconds: float) -> None:
    headers = {"retry-after-ms": milliseconds, "retry-after": "7"}
    assert read_retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"x-ratelimit-reset-requests": "2m59.56s"}, 179.56, id="Groq"),
        pytest.param(
            {
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            360.0,
            id="OpenAI: the quota that is used up",
        ),
        pytest.param(
            {
                "x-ratelimit-reset-requests-day": "33011.38",
                "x-ratelimit-remaining-requests-day": "10",
                "x-ratelimit-reset-tokens-minute": "11.5",
                "x-ratelimit-remaining-tokens-minute": "0",
            },
            11.5,
            id="Cerebras",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-tokens-reset": "2015-10-21T07:28:42Z",
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:00",
                "anthropic-ratelimit-requests-remaining": "0",
            },
            42.0,
            id="Anthropic",
        ),
        pytest.param({"X-RateLimit-Reset": "1445412490000"}, 10.0, id="OpenRouter"),
        pytest.param({"x-ratelimit-reset": "1445412470"}, 0.0, id="a time gone by"),
        pytest.param({"retry-after": "1m5s", "ratelimit-reset": "9"}, 65.0, id="span"),
        pytest.param({"x-ratelimit-reset-tokens": "soon"}, None, id="no time"),
    ],
)
def test_rate_limit_without_retry_after_lasts_until_its_quota_is_filled(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_retry_after(httpx.Headers(headers), NOW) == (
        seconds and pytest.approx(seconds)
    )


# The numbers in the refusals of conversations that are too long


# What upstreams say of a window of 32,768 tokens and a prompt of 40,123 tokens:
# both numbers, the first alone, and none (or one that means something else).
BOTH = {
    "OpenAI": (
        "This model's maximum context length is 32768 tokens. However, your messages "
        "resulted in 40123 tokens (39000 in the messages, 1123 in the functions). "
        "Please reduce the length of the messages or functions."
    ),
    "OpenAI, with the answer": (
        "This model's maximum context length is 32768 tokens. However, you requested "
        "44123 tokens (40123 in the messages, 4000 in the completion)."
    ),
    "vLLM": (
        "This model's maximum context length is 32768 tokens. However, you requested "
        "4096 output tokens and your prompt contains at least 40123 input tokens, for "
        "a total of at least 44219 tokens."
    ),
    "vLLM, cap": (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's "
        "maximum context length is 32768 tokens and your request has 40123 input "
        "tokens (4096 > 32768 - 40123)."
    ),
    "OpenRouter": (
        "This endpoint's maximum context length is 32768 tokens. However, you "
        "requested about 44123 tokens (40123 of text input, 4000 in the output)."
    ),
    "Anthropic": "prompt is too long: 40123 tokens > 32768 maximum",
    "Anthropic, with the answer": (
        "input length and `max_tokens` exceed context limit: 40123 + 8192 > 32768, "
        "decrease input length or `max_tokens` and try again"
    ),
    "Gemini": (
        "The input token count (40123) exceeds the maximum number of tokens allowed "
        "(32768)."
    ),
    "Mistral": (
        "Prompt contains 40123 tokens and 0 draft tokens, too large for model with "
        "32768 maximum context length"
    ),
    "Together": (
        "The input (40123 tokens) is longer than the model's context length (32768 "
        "tokens)."
    ),
    "xAI": (
        "This model's maximum prompt length is 32768 but the request contains 40123 "
        "tokens."
    ),
    "Copilot": "prompt token count of 40123 exceeds the limit of 32768",
    "llama.cpp": (
        "request (40123 tokens) exceeds the available context size (32768 tokens), "
        "try increasing it"
    ),
    "llama-cpp-python": "Requested tokens (40123) exceed context window of 32768",
    "OpenAI, reasoning": (
        "Input tokens exceed the configured limit of 32768 tokens. Your messages "
        "resulted in 40123 tokens. Please reduce the length of the messages."
    ),
    "Kimi, counted": (
        "Your request exceeded model token limit: 32768 (requested: 40123)"
    ),
    "SiliconFlow": (
        "length of prompt_tokens (40123) must be less than max_seq_len (32768)."
    ),
    "TGI": (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. "
        "Given: 40123 `inputs` tokens and 100 `max_new_tokens`"
    ),
    "Volcengine": "Input length 40123 exceeds the maximum length 32768",
    "Fireworks": "The prompt is too long: 40123, model maximum context length: 32768",
    "Cerebras": (
        "Please reduce the length of the messages or completion. Current length is "
        "40123 while limit is 32768"
    ),
    "TensorRT-LLM": "Prompt length (40123) exceeds maximum input length (32768)",
    "watsonx": (
        "the number of input tokens 40123 cannot exceed the total tokens limit 32768 "
        "for this model"
    ),
}
WINDOW = {
    "Gemini, older": (
        "The input token count exceeds the limit: the model only supports up to 32768"
    ),
    "DashScope": "Range of input length should be [1, 32768]",
    "Cohere": (
        "too many tokens: size limit exceeded by 7355 tokens. Try using shorter or "
        "fewer inputs. The limit for this model is 32768 tokens."
    ),
    "LM Studio": (
        "The number of tokens to keep from the initial prompt is greater than the "
        "context length (n_keep: 40123>= n_ctx: 32768). Try a larger context length."
    ),
    "GitHub": "Request body too large for gpt-4o model. Max size: 32768 tokens.",
    "TGI, without an answer": "`inputs` must have less than 32768 tokens. Given: 40123",
    "Cloudflare": (
        "The estimated number of input and maximum output tokens (44123) exceeded this "
        "model context window limit (32768)."
    ),
}
NEITHER = {
    "Z.ai": "Prompt exceeds max length",
    "a batch": "increase the physical batch size (current: 512)",
}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *(pytest.param(text, (32_768, 40_123), id=name) for name, text in BOTH.items()),
        *(pytest.param(text, (32_768, None), id=name) for name, text in WINDOW.items()),
        *(pytest.param(text, (None, None), id=name) for name, text in NEITHER.items()),
    ],
)
def test_context_overflow_error_carries_the_numbers(
    text: str, told: tuple[int | None, int | None]
) -> None:
    for status in (0, 400, 413, 500):
        error = refusal_of({"error": {"message": text}}, status)
        assert isinstance(error, ContextLengthExceeded)
        assert (error.window, error.counted) == told
        cure = "--ubatch-size" if "batch" in text else "new conversation"
        assert (error.retryable, cure in error.hint) == (False, True)


def test_context_overflow_is_no_rate_limit_that_names_the_context_length() -> None:
    text = "Rate limit reached on tokens per min: maximum context length is 32768"
    error = refusal_of({"error": {"message": text}}, 429)
    assert type(error) is UpstreamRefused


@given(VALUES, VALUES)
def test_context_overflow_fields_may_hold_anything(one: Any, other: Any) -> None:
    told = overflow_of("", {"n_ctx": one, "n_prompt_tokens": other})
    assert all(n is None or 64 <= n < 2**31 for n in (told.window, told.counted))


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


# Recorded error bodies and the texts that users report: class and cure of each


pytestmark = pytest.mark.shared
GOLDEN = Path(__file__).parents[1] / "golden" / "refusals.json"
MOST_UNKNOWN = 8


def bodies(shared: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield the name, the status and the body of each refusal."""
    for item in recorded(shared, "error"):
        raw = bytes_of(shared, item)
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode("utf-8", "replace")
        yield item["id"], item["status"], body
    path = shared / "upstreams" / "refusals.py"
    spec = importlib.util.spec_from_file_location("refusals", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.REFUSALS


def test_refusals_keep_their_class_and_their_cure(
    shared: Path, request: pytest.FixtureRequest
) -> None:
    found = {
        name: [error.kind.value, bool(error.hint)]
        for name, status, body in bodies(shared)
        for error in [refusal_of(body, status)]
    }
    if request.config.getoption("--update-golden"):
        lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(found.items()))
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    assert found == json.loads(GOLDEN.read_text("utf-8"))
    unknown = [name for name, (kind, _) in found.items() if kind == "upstream_refused"]
    assert len(unknown) <= MOST_UNKNOWN, unknown
    assert [name for name, (_, cure) in found.items() if not cure] == unknown


def test_rate_limit_details_of_google_tell_a_minute_from_a_plan() -> None:
    def found(message: str, **detail: Any) -> tuple[str, str]:
        body = {"error": {"message": message, "code": 429, "details": [detail]}}
        error = refusal_of(body, 429)
        return error.code, error.hint

    quota = [{"quotaId": "RequestsPerMinute"}]
    minute = found("exceeded your current quota", violations=quota)
    assert minute[0] == "upstream_rate_limit"
    code, hint = found("Quota exceeded, limit: 0", violations=quota)
    assert code == "upstream_quota"
    assert "plan does not include it" in hint
    assert found("Sorry", reason="API_KEY_INVALID")[0] == "upstream_auth"
    assert found("Sorry", reason="OTHER")[0] == "upstream_rate_limit"
    assert found("Sorry", retryDelay="7200s")[0] == "upstream_quota"


def test_error_body_of_a_firewall_is_not_one_of_the_key() -> None:
    page = "<!DOCTYPE html><title>Just a moment...</title>"
    assert refusal_of(page, 403).code == "upstream_region"
    assert refusal_of("<!DOCTYPE html><title>No</title>", 403).code == "upstream_auth"


def test_error_body_of_a_quota_says_when_it_is_reset() -> None:
    error = refusal_of({"error": {"message": "weekly usage limit"}}, 429, 7200.0)
    assert error.hint.startswith("It is reset in 2 h: ")
