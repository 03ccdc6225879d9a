"""Routes under /v1: who is asking, where it goes, and the list of models."""

import pytest

from byok.core.errors import BadRequest
from byok.core.routing import ListedModel
from byok.server.openai_api import (
    ROUTES,
    ClientApi,
    Forward,
    client_api,
    find_route,
    model_list,
    one_model,
    takes_api_key,
)


def test_openai_api_route_leads_to_the_upstream_endpoint_of_the_same_name() -> None:
    paths = {row.upstream_path for row in ROUTES if isinstance(row, Forward)}
    assert paths == {
        "chat/completions",
        "completions",
        "embeddings",
        "responses",
        "messages",
        "messages/count_tokens",
    }


def test_openai_api_lists_a_model_by_its_full_id() -> None:
    listed = model_list([ListedModel("fake", "a/b")])
    assert listed["object"] == "list"
    (row,) = listed["data"]
    assert (row["id"], row["object"], row["owned_by"]) == (
        "byok:fake:a/b",
        "model",
        "fake",
    )
    assert (row["type"], row["display_name"]) == ("model", "a/b")
    assert listed["first_id"] == listed["last_id"] == row["id"]
    assert model_list([])["data"] == []


MODELS = [ListedModel("fake", "a/b"), ListedModel("other", "c")]


@pytest.mark.parametrize("wanted", ["byok:fake:a/b", "a/b"])
def test_openai_api_finds_a_model_by_its_id_or_its_name(wanted: str) -> None:
    assert one_model(MODELS, wanted)["id"] == "byok:fake:a/b"


def test_openai_api_unknown_model_is_not_found() -> None:
    with pytest.raises(BadRequest) as caught:
        one_model(MODELS, "gone")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/models", "/v1/models"),
        ("/v1/models/byok:x:a%2Fb", "/v1/models/{id} byok:x:a/b"),
        ("/models/byok:x:a/b", "/v1/models/{id} byok:x:a/b"),
        ("/v1/models/", ""),
        ("/v1/chat/completions", ""),
        ("/v1/v1/messages", "/v1/messages"),
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
    editor = client_api(path + "?x=1") is ClientApi.EDITOR
    assert editor == (not found and not path.startswith("/v1/"))


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/messages?beta=true", ClientApi.ANTHROPIC),
        ("/messages", ClientApi.ANTHROPIC),
        ("/v1/v1/messages/count_tokens", ClientApi.ANTHROPIC),
        ("/v1/responses", ClientApi.OPENAI),
        ("/v1/unknown", ClientApi.OPENAI),
        ("/mcp", ClientApi.MCP),
        ("/chat-stream", ClientApi.EDITOR),
    ],
)
def test_openai_api_path_tells_whose_protocol_a_client_speaks(
    path: str, api: ClientApi
) -> None:
    assert client_api(path) is api


def test_openai_api_takes_anthropics_header_of_the_token_on_its_own_paths_only() -> (
    None
):
    taken = ["/v1/messages?beta=true", "/messages", "/v1/models/a%2Fb"]
    assert all(map(takes_api_key, taken))
    assert not any(map(takes_api_key, ["/chat-stream", "/v1/unknown", "/mcp"]))
