"""Error bodies: always one sentence, with a code and a cure where they are known."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.errors import ContextLengthExceeded, UpstreamRefused
from byok.dialects.error_bodies import error_text, refusal_of
from tests.fakes.linear import check_linear
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
        pytest.param({"message": "No.", "code": "c"}, "No.", "c", id="at the top"),
        pytest.param({"detail": "No."}, "No.", "", id="detail"),
        pytest.param({"error": {"detail": "No."}}, "No.", "", id="detail inside"),
        pytest.param(
            {"detail": [{"msg": "No.", "loc": ["body", "seed", 0]}, {"msg": "Nor."}]},
            "body.seed.0: No.; Nor.",
            "",
            id="a list of details",
        ),
        pytest.param(
            {"object": "error", "message": {"detail": [{"msg": "No."}]}},
            "No.",
            "",
            id="details inside",
        ),
        pytest.param({"errors": [{"message": "No."}]}, "No.", "", id="errors"),
        pytest.param(
            {"statusCode": 400, "error": "Bad Request", "message": "No."},
            "Bad Request: No.",
            "",
            id="a status in words before it",
        ),
        pytest.param(
            {"error": True, "message": "No."}, "No.", "", id="a flag before it"
        ),
        pytest.param(
            {"error": {"code": 401, "type": "t", "message": "No."}},
            "No.",
            "t",
            id="a status as the code",
        ),
        pytest.param(
            {"error": {"code": 401, "message": "No."}}, "No.", "", id="only a status"
        ),
        pytest.param(
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": "busy upstream"},
                }
            },
            "busy upstream",
            "",
            id="a router",
        ),
        pytest.param(
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": '{"error": {"message": "No."}}'},
                }
            },
            "No.",
            "",
            id="a router with the provider's JSON",
        ),
        pytest.param(
            {"error": {"message": "Provider returned error", "metadata": []}},
            "Provider returned error",
            "",
            id="a router that tells nothing",
        ),
        pytest.param("No.", "No.", "", id="no JSON"),
        pytest.param(
            {"error": {"message": "a\n  b\r\nc"}}, "a b c", "", id="several lines"
        ),
        pytest.param({"error": {"code": "c"}}, "", "c", id="only a code"),
        pytest.param({"error": {}}, "", "", id="an empty error"),
        pytest.param({}, "", "", id="an empty object"),
        pytest.param([], "", "", id="an empty list"),
        pytest.param(None, "", "", id="null"),
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


def test_error_body_detail_path_names_the_parameter() -> None:
    body = {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra input"}]}
    assert "body.stream_options: Extra input." in str(refusal_of(body, 422))


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


def exhausted(quota: str, delay: str = "36s") -> list[dict[str, Any]]:
    """Gemini's refusal of too many requests: the wait is behind 300 characters."""
    message = (
        "You exceeded your current quota, please check your plan and billing details. "
        + "For more information on this error, head to the documentation. " * 5
        + f"* Quota exceeded for metric: requests, limit: 20. Please retry in {delay}."
    )
    details = [
        {"@type": "QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": "RetryInfo", "retryDelay": delay},
    ]
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}
    return [{"error": {**error, "details": details}}]


def test_error_body_retry_delay_of_gemini_is_kept_and_shown() -> None:
    error = refusal_of(exhausted("GenerateRequestsPerMinutePerProject"), 429)
    assert (error.code, error.retryable) == ("upstream_rate_limit", True)
    assert (error.retry_after, error.status) == (36.0, 429)
    assert error.hint == "Wait 36 s and try again."


def test_error_body_daily_quota_is_not_retried_within_seconds() -> None:
    error = refusal_of(exhausted("GenerateRequestsPerDayPerProjectPerModel"), 429)
    assert (error.code, error.retryable) == ("upstream_quota", False)
    assert (error.retry_after, error.status) == (None, 422)
    assert "day" in error.hint


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
    for body in ({"error": text}, {"error": {"message": text, "code": 400}}):
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


def test_error_body_of_a_plan_has_its_reset_and_is_not_passed_on_as_a_wait() -> None:
    body = {"error": {"type": "usage_limit_reached", "resets_in_seconds": 13_872}}
    error = refusal_of(body, 429)
    assert (error.kind, error.retryable) == ("upstream_quota", False)
    assert (error.retry_after, error.status) == (13_872, 422)
    assert "4 h" in error.hint


def check_sentence(error: UpstreamRefused) -> None:
    sentence = error.sentence
    assert len(str(error)) > 10
    assert len(sentence) <= 420
    assert sentence == " ".join(sentence.split())
    assert str(error).endswith((".", "?", "!", "…"))


LONG = "x\n" * 5000
NESTED: Any = "No."
for _ in range(1015):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(LONG, id="a long text"),
        pytest.param({"error": LONG}, id="a long error"),
        pytest.param({"error": {"code": LONG}}, id="a long code"),
        pytest.param({"message": {"a": LONG}}, id="a long object"),
        pytest.param({"error": {"message": "."}}, id="a full stop"),
        pytest.param({"error": {"message": "\n"}}, id="a blank"),
        pytest.param(NESTED, id="a deep list"),
        pytest.param({"error": {"message": NESTED}}, id="a deep message"),
        pytest.param({"error": {"code": NESTED}}, id="a deep code"),
    ],
)
def test_error_body_with_odd_content_becomes_one_short_sentence(body: Any) -> None:
    for status in (0, 400, 404):
        check_sentence(refusal_of(body, status))


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
