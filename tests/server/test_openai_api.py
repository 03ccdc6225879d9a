"""What OpenAI clients are told: the list of models, and errors in their shape."""

import pytest

from byok.errors import (
    MODEL_NOT_FOUND,
    BadRequest,
    ByokError,
    KeyMissing,
    NotAllowed,
    NotReady,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.model_ids import ListedModel
from byok.server.openai_api import (
    ROUTES,
    Forward,
    error_body,
    find_route,
    is_openai,
    model_list,
    one_model,
    status_of,
)


def test_openai_api_route_leads_to_the_upstream_endpoint_of_the_same_name() -> None:
    paths = {row.upstream_path for row in ROUTES if isinstance(row, Forward)}
    assert paths == {"chat/completions", "completions", "embeddings", "responses"}


def test_openai_api_lists_a_model_by_its_full_id() -> None:
    listed = model_list([ListedModel("fake", "a/b")])
    assert listed["object"] == "list"
    (row,) = listed["data"]
    assert row == {
        "id": "byok:fake:a/b",
        "object": "model",
        "created": 0,
        "owned_by": "fake",
    }


MODELS = [ListedModel("fake", "a/b"), ListedModel("other", "c")]


@pytest.mark.parametrize("wanted", ["byok:fake:a/b", "a/b"])
def test_openai_api_finds_a_model_by_its_id_or_its_name(wanted: str) -> None:
    assert one_model(MODELS, wanted)["id"] == "byok:fake:a/b"


def test_openai_api_unknown_model_is_not_found() -> None:
    with pytest.raises(BadRequest) as caught:
        one_model(MODELS, "gone")
    assert status_of(caught.value) == 404
    assert error_body(caught.value)["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/models", "/v1/models"),
        ("/v1/models/byok:x:a%2Fb", "/v1/models/{id} byok:x:a/b"),
        ("/models/byok:x:a/b", "/v1/models/{id} byok:x:a/b"),
        ("/v1/models/", ""),
        ("/v1/chat/completions", ""),
        ("/chat", ""),
        ("/x/models", ""),
    ],
)
def test_openai_api_base_url_without_v1_and_a_model_id_are_routed(
    path: str, found: str
) -> None:
    route = find_route(path)
    told = f"{route.path} {getattr(route, 'wanted', '')}".strip() if route else ""
    assert told == found
    assert is_openai(path + "?x=1") == (bool(found) or path.startswith("/v1/"))


def refused(status: int, code: str = "") -> UpstreamRefused:
    return UpstreamRefused("No.", upstream_status=status, upstream_code=code)


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (NotAllowed("x", status=401), 401, "authentication_error", "not_allowed"),
        (BadRequest("x"), 400, "invalid_request_error", "bad_request"),
        (
            BadRequest("x", code=MODEL_NOT_FOUND, status=404),
            404,
            "invalid_request_error",
            "model_not_found",
        ),
        (KeyMissing("x"), 422, "invalid_request_error", "key_missing"),
        (NotReady("x"), 503, "server_error", "not_ready"),
        (refused(400, "bad_value"), 400, "invalid_request_error", "bad_value"),
        (refused(401), 401, "authentication_error", "upstream_refused"),
        (refused(404), 404, "invalid_request_error", "upstream_refused"),
        (refused(429, "slow_down"), 429, "rate_limit_error", "slow_down"),
        (refused(418), 418, "api_error", "upstream_refused"),
        (refused(500), 500, "api_error", "upstream_refused"),
        (refused(503), 503, "api_error", "upstream_refused"),
        (refused(0), 422, "api_error", "upstream_refused"),
        (UpstreamGarbled("x"), 422, "api_error", "upstream_garbled"),
        (UpstreamUnreachable("x"), 502, "api_error", "upstream_unreachable"),
        (
            UpstreamTimeout("x"),
            504,
            "api_error",
            "upstream_timeout",
        ),
        (ByokError("x"), 500, "api_error", "internal"),
    ],
)
def test_openai_api_error_has_a_status_a_type_and_a_code(
    error: ByokError, status: int, kind: str, code: str
) -> None:
    assert status_of(error) == status
    shape = error_body(error)["error"]
    assert (shape["type"], shape["code"], shape["param"]) == (kind, code, None)


def test_openai_api_error_message_ends_with_the_hint() -> None:
    error = ByokError("It broke.", hint="Mend it.")
    assert error_body(error)["error"]["message"] == "It broke. Mend it."
