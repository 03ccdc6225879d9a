"""Answers: JSON and errors."""

import pytest

from byok.core.errors import (
    BadRequest,
    ByokError,
    NotAllowed,
    NotReady,
    UpstreamRefused,
)
from byok.core.redact import Redactor
from byok.server.http.reply import (
    error_body,
    error_for_user,
    error_response,
    internal_error,
    json_response,
)


def test_reply_of_an_object_is_json_without_caching() -> None:
    response = json_response({"a": "é\u2028"}, 201)
    assert response.status == 201
    assert response.body == '{"a":"é\\u2028"}\n'.encode()
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Server"] == "byok"


def test_reply_of_an_error_has_one_shape_and_no_secret() -> None:
    redactor = Redactor()
    redactor.add("a-canary-of-a-key")
    error = BadRequest("bad a-canary-of-a-key", code="odd", hint="a-canary-of-a-key")
    assert error_body(error_for_user(error, redactor), "0123456789abcdef") == {
        "error": {
            "code": "odd",
            "message": "bad [redacted]",
            "hint": "[redacted]",
            "request_id": "0123456789abcdef",
            "retryable": False,
        },
        "message": "bad [redacted]",
    }


def test_command_behind_the_word_key_is_shown_where_byok_is_not_on_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    error = BadRequest("No.", hint="Check the key: byok keys list.")
    told = error_for_user(error, Redactor())  # as by a stream before its head
    assert error_for_user(told, Redactor()).hint == told.hint
    assert told.hint.endswith("keys list.")


@pytest.mark.parametrize(
    ("error", "status", "retry_after", "closes"),
    [
        (BadRequest("x"), 400, None, True),
        (NotAllowed("x", status=401), 401, None, True),
        (BadRequest("x", status=413), 413, None, True),
        (BadRequest("x", status=415), 415, None, False),
        (NotReady("x"), 503, "2", False),
        (UpstreamRefused("x", status=429, retry_after=60.4), 429, "60", False),
        (UpstreamRefused("x"), 422, None, False),
        (internal_error(), 500, None, False),
    ],
)
def test_reply_status_retry_after_and_connection_follow_the_error(
    error: ByokError, status: int, retry_after: str | None, closes: bool
) -> None:
    response = error_response(error, "id", Redactor())
    assert response.status == status
    assert response.headers.get("Retry-After") == retry_after
    assert (response.keep_alive is False) is closes
