"""A member of a team, built from settings and a ladder of keys."""

import sys
from typing import Any

import pytest

from byok.core.errors import ConfigError
from byok.core.redact import Redactor
from byok.settings import Settings
from byok.settings.keys import KeyLadder
from byok.upstream.transport import Transports
from byok.wiring.embedders import make_team_index
from tests.fakes.qdrant_members import SPACE, embed, key
from tests.fakes.qdrant_server import QdrantServer
from tests.fakes.ring import FakeRing, store_of

KEYS = {"BYOK_KEY_TEAM_INDEX": "key-of-qdrant", "BYOK_KEY_TEAM_INDEX__SALT": "salt" * 9}


def settings_of(url: str, **more: Any) -> Settings:
    return Settings(embeddings={"team": {"url": url, "team": "platform", **more}})


async def test_without_a_server_there_is_no_team() -> None:
    ladder = KeyLadder(environ={})
    assert make_team_index(Settings(), Transports(), ladder, Redactor()) is None


@pytest.mark.parametrize("write", [False, True])
async def test_a_member_uses_the_ladder(write: bool) -> None:
    transports, redactor = Transports(), Redactor()
    async with QdrantServer() as server:
        server.keys = {"key-of-qdrant": "rw"}
        settings = settings_of(server.url, write=write, search=write)
        ring = store_of(FakeRing())
        ladder = KeyLadder(environ=KEYS, keyring=ring)
        member = make_team_index(settings, transports, ladder, redactor)
        assert member is not None
        member.use(SPACE, embed("probe"))
        stored = await member.offer([key("a")], embed("a"), repositories=["h/a"])
        assert stored == int(write)
        assert len(await member.fetch([key("a")])) == int(write)
        assert member.status.url == server.url
        assert member.status.writes is write
        near = await member.nearest(
            embed("a"), repositories=["h/a"], keys=[key("a")], limit=1
        )
        assert len(near) == int(write)
        assert any(call.endswith("/query") for call in server.calls) is write
        await member.close()
    await transports.close()
    assert redactor("key-of-qdrant") != "key-of-qdrant"


async def test_without_a_salt_nobody_is_asked() -> None:
    transports = Transports()
    async with QdrantServer() as server:
        ladder = KeyLadder(environ={}, keyring=store_of(FakeRing()))
        member = make_team_index(
            settings_of(server.url), transports, ladder, Redactor()
        )
        assert member is not None
        member.use(SPACE, embed("probe"))
        assert await member.fetch([key("a")]) == {}
        assert "byok keys set team-index/salt" in member.status.note
        assert server.calls == []
        await member.close()
    await transports.close()


async def test_a_short_salt_is_refused() -> None:
    transports = Transports()
    environ = {"BYOK_KEY_TEAM_INDEX__SALT": "short"}
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    member = make_team_index(
        settings_of("http://127.0.0.1:1"), transports, ladder, Redactor()
    )
    assert member is not None
    member.use(SPACE, embed("probe"))
    assert await member.fetch([key("a")]) == {}
    assert "fewer than 16" in member.status.note
    await transports.close()


async def test_without_the_package_the_settings_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    transports, ladder = Transports(), KeyLadder(environ={})
    with pytest.raises(ConfigError, match="qdrant-client"):
        make_team_index(settings_of("https://h"), transports, ladder, Redactor())
    await transports.close()
