"""Paths, the rows that answer them, and who serves a request."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import BadRequest
from byok.core.routing import EndpointGroup, ListedModel, ServedBy
from byok.protocols.augment.constant_replies import ConstantReply
from byok.protocols.augment.endpoints import ENDPOINTS, Refused
from byok.server.openai_api import (
    ClientApi,
    client_api,
    find_route,
    model_list,
    one_model,
    takes_api_key,
)
from byok.server.routes import find_elsewhere, find_row, max_body_bytes
from byok.settings.sections import OfficialSettings

PATHS = [row.path for row in ENDPOINTS]


def test_routes_have_no_duplicate_paths() -> None:
    assert len(set(PATHS)) == len(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_routes_are_found_however_a_client_joins_the_path(path: str) -> None:
    for raw in (path, f"{path}/", f"/{path}", f"/api{path}", f"/a/b/c{path}//?x=/y#z"):
        row, known = find_row(raw)
        assert (row.path, known) == (path, True)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("/agents/codebase-retrieval", "/agents/codebase-retrieval"),
        ("/chat/chat-stream", "/chat-stream"),
        ("/remote-agents/list", "/remote-agents/list"),
        ("/chat?path=/../%2e", "/chat"),
    ],
)
def test_routes_match_the_longest_known_end_of_a_path(raw: str, path: str) -> None:
    row, known = find_row(raw)
    assert (row.path, known) == (path, True)


@pytest.mark.parametrize(
    "raw",
    [
        "/%2e%2e/chat",
        "/%2E/chat",
        "/../chat",
        "/./chat",
        "/chat/..",
        "/chat%00",
        "/chat\x00",
        "/chat;x",
        "/chat%3bx",
        "/..%5cchat",
        "/a\\chat",
        "/a%2fchat",
    ],
)
def test_routes_refuse_a_path_that_could_hide_another(raw: str) -> None:
    with pytest.raises(BadRequest) as caught:
        find_row(raw)
    assert (caught.value.status, caught.value.code) == (404, "not_found")


UPDATES: tuple[dict[str, Any]] = ({"updates": [], "events": []},)


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("/no/such", ConstantReply("/no/such", ({},))),
        ("/CHAT", ConstantReply("/CHAT", ({},))),
        ("/", ConstantReply("/", ({},))),
        ("/some-stream", ConstantReply("/some-stream", (), stream=True)),
        (
            "/some/stream",
            ConstantReply("/some/stream", UPDATES),
        ),
        ("/streams", ConstantReply("/streams", ({},))),
        ("/settings/anything", ConstantReply("/settings/anything", ({"configs": []},))),
        (
            "/x/poll-update",
            ConstantReply("/x/poll-update", UPDATES),
        ),
    ],
)
def test_routes_answer_an_unknown_path_in_a_way_that_calms_clients(
    raw: str, answer: ConstantReply
) -> None:
    assert find_row(raw) == (answer, False)


@pytest.mark.parametrize(
    "path",
    [
        "/settings/upsert-mcp-configs",
        "/api/settings/upsert-mcp-server",
        "/settings/update-x",
        "/user-secrets/upsert",
        "/cloud-agents/agents/create",
        "/cloud-agents/agents/send-message",
        "/cloud-experts/experts/create-agent",
    ],
)
def test_routes_refuse_to_write_what_byok_does_not_keep(path: str) -> None:
    row, _ = find_row(path)
    assert isinstance(row, Refused)
    assert row.status == 403 and row.reason


@pytest.mark.parametrize(
    "raw",
    [
        "/api/tags",
        "/api/generate",
        "/api/show?x=y",
        "/ollama/api/version",
        "/v1beta/models",
        "/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
        "/v1/models/gemini-3:generateContent",
        "/models/gemini-3:countTokens",
        "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
        "/openai/deployments/gpt/chat/completions?api-version=1",
        "/x/chat/completions",
        "/v1/chat/completion",
        "/v1/threads",
    ],
)
def test_routes_of_other_apis_are_refused_with_a_cure(raw: str) -> None:
    with pytest.raises(BadRequest) as caught:
        find_row(raw)
    assert (caught.value.status, caught.value.code) == (404, "not_found")
    assert "/v1" in caught.value.hint
    for near in ("/v1/models/qwen:7b", "/api/chat", "/openai/v1/chat/completions"):
        find_row(near)


@given(st.text(max_size=60))
def test_routes_any_text_is_a_row_or_not_found(text: str) -> None:
    try:
        row, _ = find_row("/" + text)
    except BadRequest as error:
        assert error.status == 404
    else:
        assert row.path.startswith("/")


ASKED = {"model": "byok:fake:asked"}
OFFICIAL = {"base_url": "https://h.example", "chat": "official", "context": "official"}


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/chat", {}, ServedBy.OFFICIAL),
        ("/chat", {"model": "claude"}, ServedBy.OFFICIAL),
        ("/chat", {"model": "byok:gone:m"}, None),
        ("/chat", {"model": "byok:an-alias"}, None),
        ("/chat", {"model": "byok-like"}, ServedBy.OFFICIAL),
        ("/chat", ASKED, None),
        ("/chat", {"modelId": "byok:fake:x"}, None),
        ("/save-chat", ASKED, ServedBy.OFFICIAL),
        ("/find-missing", ASKED, ServedBy.OFFICIAL),
        ("/edit", {}, None),
        ("/client-metrics", {}, None),
        ("/token", {}, None),
        ("/no/such", {}, None),
        ("/byok/retrieval", {}, None),
        ("/v1/chat/completions", {}, None),
        ("/v1/models", {}, None),
    ],
)
def test_served_by_gives_the_place_of_a_request(
    path: str, body: dict[str, Any], where: ServedBy | None
) -> None:
    settings = OfficialSettings.model_validate(OFFICIAL)
    found = find_elsewhere(settings, find_row(path)[0], body)
    assert (found.where if found else None) is where
    assert found is None or found.row.path == path


def test_served_by_off_counts_for_every_model() -> None:
    settings = OfficialSettings(chat=ServedBy.OFF)
    found = find_elsewhere(settings, find_row("/chat")[0], ASKED)
    assert found is not None
    assert (found.group, found.where) == (EndpointGroup.CHAT, ServedBy.OFF)


@pytest.mark.parametrize(
    ("path", "mebibytes"),
    [
        ("/chat", 64),
        ("/batch-upload", 32),
        ("/save-chat", 32),  # the official service reads it
        ("/client-metrics", 1),
        ("/no/such", 1),
        ("/v1/models", 1),
    ],
)
def test_body_limit_is_small_where_nobody_reads_the_body(
    path: str, mebibytes: int
) -> None:
    settings = OfficialSettings.model_validate(OFFICIAL)
    assert max_body_bytes(settings, find_row(path)[0]) == mebibytes * 2**20


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


def test_openai_api_finds_a_model_by_its_id_or_its_name() -> None:
    for wanted in ("byok:fake:a/b", "a/b"):
        assert one_model(MODELS, wanted)["id"] == "byok:fake:a/b"
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
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/messages", "/v1/messages"),
        ("/chat", ""),
        ("/x/models", ""),
    ],
)
def test_openai_api_base_url_without_v1_and_a_model_id_are_routed(
    path: str, found: str
) -> None:
    route = find_route(path)
    told = f"{route.path} {getattr(route, 'model_id', '')}".strip() if route else ""
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
