"""Errors in the shapes of both APIs, with their status."""

import pytest

from byok.core.errors import (
    MODEL_NOT_FOUND,
    BadRequest,
    ByokError,
    ContextLengthExceeded,
    KeyMissing,
    NotAllowed,
    NotReady,
    RefusalKind,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.protocols.v1.fields import (
    anthropic_error,
    openai_error,
    response_error,
    status_of,
)

INVALID, AUTH = "invalid_request_error", "authentication_error"


def refused(status: int, code: str = "") -> UpstreamRefused:
    return UpstreamRefused("No.", upstream_status=status, upstream_code=code)


@pytest.mark.parametrize(
    ("error", "status", "kind", "code", "anthropic"),
    [
        (NotAllowed("x", status=401), 401, AUTH, "not_allowed", AUTH),
        (BadRequest("x"), 400, INVALID, "bad_request", INVALID),
        (
            BadRequest("x", code=MODEL_NOT_FOUND, status=404),
            404,
            INVALID,
            "model_not_found",
            "not_found_error",
        ),
        (
            BadRequest("x", status=413),
            413,
            INVALID,
            "bad_request",
            "request_too_large",
        ),
        (BadRequest("x", status=409), 409, INVALID, "bad_request", INVALID),
        (KeyMissing("x"), 422, INVALID, "key_missing", INVALID),
        (NotReady("x"), 503, "server_error", "not_ready", "overloaded_error"),
        (refused(400, "bad_value"), 400, INVALID, "bad_value", INVALID),
        (refused(401), 401, AUTH, "upstream_refused", AUTH),
        (refused(404), 404, INVALID, "upstream_refused", "not_found_error"),
        (
            refused(429, "slow_down"),
            429,
            "rate_limit_error",
            "slow_down",
            "rate_limit_error",
        ),
        (refused(418), 418, "api_error", "upstream_refused", "api_error"),
        (refused(500), 500, "api_error", "upstream_refused", "api_error"),
        (refused(529), 529, "api_error", "upstream_refused", "overloaded_error"),
        (refused(0), 422, "api_error", "upstream_refused", "api_error"),
        (UpstreamGarbled("x"), 422, "api_error", "upstream_garbled", "api_error"),
        (
            UpstreamUnreachable("x"),
            502,
            "api_error",
            "upstream_unreachable",
            "api_error",
        ),
        (UpstreamTimeout("x"), 504, "api_error", "upstream_timeout", "api_error"),
        (ByokError("x"), 500, "api_error", "internal", "api_error"),
    ],
)
def test_errors_have_a_status_a_type_and_a_code(
    error: ByokError, status: int, kind: str, code: str, anthropic: str
) -> None:
    assert status_of(error) == status
    shape = openai_error(error)["error"]
    assert (shape["type"], shape["code"], shape["param"]) == (kind, code, None)
    assert anthropic_error(error)["error"]["type"] == anthropic


def test_errors_have_the_message_and_the_hint() -> None:
    error = ByokError("It broke.", hint="Mend it.")
    assert openai_error(error)["error"]["message"] == "It broke. Mend it."
    assert anthropic_error(error, "id") == {
        "type": "error",
        "error": {"type": "api_error", "message": "It broke. Mend it."},
        "request_id": "id",
    }


def test_errors_inside_a_stream_have_the_code_that_clients_act_on() -> None:
    busy = UpstreamRefused("x", kind=RefusalKind.OVERLOADED)
    assert anthropic_error(busy)["error"]["type"] == "overloaded_error"
    assert response_error(busy)["code"] == "server_is_overloaded"
    long = ContextLengthExceeded("x")
    assert response_error(long)["code"] == "context_length_exceeded"
    assert response_error(refused(0))["code"] == "server_error"
    assert response_error(ByokError("x"))["code"] == "server_error"
