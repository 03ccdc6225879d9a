"""Upstreams that are built again as the settings change."""

from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import ChatRequest, Message, Role, TextPart
from byok.core.errors import ConnectFailed
from byok.settings import Settings
from byok.upstream.base import Destination
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.fallback import FallbackMemory, Fallbacks
from byok.upstream.router import Router
from byok.wiring.upstreams import UpstreamPool
from tests.fakes.prompts import NONE
from tests.fakes.ring import make_shared
from tests.fakes.scripted import Answer, Scripted

BOX = {"base_url": "http://127.0.0.1:9/v1"}


@pytest.fixture
def pool() -> UpstreamPool:
    return UpstreamPool(make_shared())


def build(pool: UpstreamPool, **settings: Any) -> dict[str, Any]:
    given = Settings(upstreams={"box": BOX}, **settings)
    return dict(pool.build(given, given.upstreams, NONE))


def _refuse(chat: ChatRequest) -> Answer:
    raise ConnectFailed("No.")


@pytest.mark.parametrize(
    ("changed", "is_kept"),
    [
        ({}, True),
        ({"log": {"level": "debug"}}, True),
        ({"chat": {"headers": {"X-Team": "7"}}}, False),
        ({"network": {"proxy": "http://p:1"}}, True),  # not for a local server
        ({"routing": {"models": {"summary": "byok:box:small"}}}, False),
    ],
    ids=str,
)
def test_an_upstream_is_kept_while_what_it_depends_on_stays_equal(
    pool: UpstreamPool, changed: dict[str, Any], *, is_kept: bool
) -> None:
    before = build(pool)["box"]
    after = build(pool, **changed)["box"]
    assert (after is before) is is_kept
    assert build(pool, **changed)["box"] is after


async def test_upstream_pool_lets_others_write_summaries_if_the_user_named_them(
    pool: UpstreamPool, tmp_path: Path
) -> None:
    answering = Scripted(name="b")
    upstreams = {"a": Scripted(_refuse, "a"), "b": answering}
    catalog = Catalog(map(CatalogEntry, upstreams.values()), tmp_path / "models.json")
    routing = {"models": {"summary": "byok:a:small"}}
    upstream = build(pool, routing=routing)["box"]
    pool.router = Router(upstreams, catalog)
    pool.fallbacks = Fallbacks(
        pool.router, lambda purpose: ["byok:b:m"], (), FallbackMemory()
    )
    helpers: Any = upstream.built_from[-1]
    dropped = [Message(Role.USER, (TextPart("Hello."),))]
    own = Destination(upstream.upstream, "m")
    assert await helpers.summarise(own, dropped, 9999, 999) == "Fine."
    assert [model for _, model in answering.asked] == ["m"]
