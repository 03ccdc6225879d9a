"""The section about a team's index: off by default, and https to other machines."""

from typing import Any

import pytest
from pydantic import ValidationError

from byok.settings import Settings
from byok.settings.sections import TeamSettings

URL = "https://qdrant.example:6333"


def test_nothing_is_shared_until_a_server_is_named() -> None:
    assert not Settings().embeddings.team.on
    assert not TeamSettings(team="platform", write=True).on
    own = TeamSettings(url=f"{URL}/", team="platform")
    assert (own.on, own.url, own.write, own.search) == (True, URL, False, False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"url": URL}, "no team"),
        ({"url": URL, "team": "Team"}, "a-z, 0-9"),
        ({"url": URL, "team": "a/b"}, "a-z, 0-9"),
        ({"url": "qdrant.example", "team": "a"}, "must look like https"),
        ({"url": "http://qdrant.example", "team": "a"}, "plain http"),
        ({"url": "https://user:key@h", "team": "a"}, "must not contain a user"),
        ({"url": "https://h?api-key=x", "team": "a"}, "query"),
        ({"url": "http://169.254.169.254", "team": "a"}, "link-local"),
        ({"url": URL, "team": "a", "api_key": "x"}, "Extra inputs"),
        ({"url": URL, "team": "a", "proxy": "socks5://h"}, "proxy"),
    ],
)
def test_settings_that_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TeamSettings(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"url": "http://127.0.0.1:6333", "team": "a"},
        {"url": "http://[::1]:6333", "team": "a"},
        {"url": "http://h:6333", "team": "a", "allow_insecure_http": True},
    ],
)
def test_plain_http_on_this_machine_and_where_it_is_allowed(
    given: dict[str, Any],
) -> None:
    assert TeamSettings(**given).on


@pytest.mark.parametrize("name", ["team-index", "team_index", "team-index__salt"])
def test_no_upstream_has_the_key_of_the_team(name: str) -> None:
    upstreams = {name: {"base_url": "https://h/v1"}}
    assert Settings(upstreams=upstreams)
    with pytest.raises(ValidationError, match="would both be read from BYOK_KEY_TEAM"):
        Settings(upstreams=upstreams, embeddings={"team": {"url": URL, "team": "a"}})
