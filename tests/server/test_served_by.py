"""Who answers a request: byok, the official service or nobody."""

from typing import Any

import pytest

from byok.core.routing import EndpointGroup, ServedBy
from byok.server.routes import choose_where, find_row, longest_body
from byok.settings.sections import OfficialSettings

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
        ("/client-metrics", {}, ServedBy.OFF),
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
    found = choose_where(settings, find_row(path)[0], body)
    assert (found.where if found else None) is where
    assert found is None or found.row.path == path


def test_served_by_off_counts_for_every_model() -> None:
    settings = OfficialSettings(chat=ServedBy.OFF)
    found = choose_where(settings, find_row("/chat")[0], ASKED)
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
    assert longest_body(settings, find_row(path)[0]) == mebibytes * 2**20
