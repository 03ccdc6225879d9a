"""The error tree: what each class means to HTTP and to a person."""

import inspect

import pytest

from byok import errors
from byok.errors import (
    BadRequest,
    ByokError,
    ConfigError,
    KeyMissing,
    NotAllowed,
    NotReady,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamUnreachable,
)

TREE = {
    ByokError: (Exception, 500, "internal", False),
    ConfigError: (ByokError, 400, "config", False),
    KeyMissing: (ConfigError, 422, "key_missing", False),
    BadRequest: (ByokError, 400, "bad_request", False),
    NotAllowed: (ByokError, 403, "not_allowed", False),
    NotReady: (ByokError, 503, "not_ready", True),
    UpstreamError: (ByokError, 422, "upstream_failed", False),
    UpstreamUnreachable: (UpstreamError, 422, "upstream_unreachable", True),
    UpstreamRefused: (UpstreamError, 422, "upstream_refused", False),
    UpstreamGarbled: (UpstreamError, 422, "upstream_garbled", False),
}


def test_the_table_of_this_test_is_the_whole_tree() -> None:
    classes = {c for _, c in inspect.getmembers(errors, inspect.isclass)}
    assert classes == set(TREE)
    assert all(c.__name__ in (errors.__doc__ or "") for c in TREE)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_each_class_has_its_place_status_and_code(kind: type[ByokError]) -> None:
    error = kind("It broke.")
    found = (kind.__base__, error.status, error.code, error.retryable)
    assert found == TREE[kind]


@pytest.mark.parametrize("status", [0, 400, 401, 403, 404, 429, 500, 502, 503, 504])
def test_an_upstreams_status_is_kept_and_never_becomes_byoks(status: int) -> None:
    error = UpstreamRefused("No.", upstream_status=status, retry_after=2.5)
    assert (error.status, error.upstream_status) == (422, status)
    assert error.retry_after == 2.5


@pytest.mark.parametrize(
    ("hint", "sentence"),
    [("", "It broke."), ("Run: byok serve", "It broke. Run: byok serve")],
)
def test_a_sentence_is_the_message_and_the_cure(hint: str, sentence: str) -> None:
    assert ByokError("It broke.", hint=hint).sentence == sentence


def test_one_error_can_differ_from_its_class() -> None:
    error = BadRequest("Too big.", code="too_large", status=413, retryable=True)
    assert (error.code, error.status, error.retryable) == ("too_large", 413, True)
    assert BadRequest("x").status == 400
    assert NotReady("x", retryable=False).retryable is False


def test_the_log_never_holds_an_upstreams_own_words() -> None:
    refused = UpstreamRefused("Your prompt was: secret", upstream_status=400, code="x")
    assert refused.log_text == "refused with 400 (x)"
    assert UpstreamRefused("secret", code="x").log_text == "refused with an event (x)"
    assert NotReady("Wait.", hint="A little.").log_text == "Wait. A little."
