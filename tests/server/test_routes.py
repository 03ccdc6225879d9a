"""Paths and the rows that answer them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.augment.constant_replies import ConstantReply
from byok.augment.endpoints import ENDPOINTS
from byok.errors import BadRequest
from byok.server.routes import find_row

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


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("/no/such", ConstantReply("/no/such", {})),
        ("/CHAT", ConstantReply("/CHAT", {})),
        ("/", ConstantReply("/", {})),
        ("/some-stream", ConstantReply("/some-stream", None, stream=True)),
        ("/some/stream", ConstantReply("/some/stream", {"updates": [], "events": []})),
        ("/some-stream", ConstantReply("/some-stream", None, stream=True)),
        ("/streams", ConstantReply("/streams", {})),
        ("/settings/anything", ConstantReply("/settings/anything", {"configs": []})),
        (
            "/x/poll-update",
            ConstantReply("/x/poll-update", {"updates": [], "events": []}),
        ),
    ],
)
def test_routes_answer_an_unknown_path_in_a_way_that_calms_clients(
    raw: str, answer: ConstantReply
) -> None:
    assert find_row(raw) == (answer, False)


@given(st.text(max_size=60))
def test_routes_any_text_is_a_row_or_not_found(text: str) -> None:
    try:
        row, _ = find_row("/" + text)
    except BadRequest as error:
        assert error.status == 404
    else:
        assert row.path.startswith("/")
