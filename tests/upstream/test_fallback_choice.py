"""Which models stand behind a chosen one: those that the user named, and no others."""

from pathlib import Path

import pytest

from byok.core.routing import Purpose
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.fallback import FallbackMemory, Fallbacks
from byok.upstream.router import Router
from tests.fakes.clock import Clock
from tests.fakes.scripted import Lister

NEAR, FAR, CLOUD = "byok:near:n", "byok:far:f", "byok:cloud:c"
ALIASES = {"best": CLOUD}


def fallbacks(folder: Path, named: list[str]) -> Fallbacks:
    upstreams = {name: Lister(name, "m") for name in ("near", "far", "cloud", "lan")}
    catalog = Catalog(map(CatalogEntry, upstreams.values()), folder / "models.json")
    router = Router(upstreams, catalog, FAR, ALIASES)
    lists = {Purpose.CHAT: named}
    return Fallbacks(
        router,
        lambda purpose: lists.get(purpose, []),
        {"near", "lan"},
        FallbackMemory(Clock()),
    )


@pytest.mark.parametrize(
    ("chosen", "named", "chain"),
    [
        pytest.param(FAR, [], None, id="none is named"),
        pytest.param(FAR, [CLOUD, FAR, NEAR], [FAR, CLOUD, NEAR], id="each once"),
        pytest.param(FAR, ["best", CLOUD, "best"], [FAR, CLOUD], id="an alias"),
        pytest.param("best", [CLOUD, NEAR], [CLOUD, NEAR], id="an alias is chosen"),
        pytest.param(NEAR, [CLOUD, FAR], None, id="what is local stays so"),
        pytest.param(NEAR, [NEAR, CLOUD], [NEAR, CLOUD], id="unless the list has it"),
        pytest.param("byok:gone:m", [CLOUD], None, id="not configured"),
        pytest.param("", [CLOUD], [FAR, CLOUD], id="the default model"),
    ],
)
async def test_fallback_asks_models_that_the_user_named(
    tmp_path: Path, chosen: str, named: list[str], chain: list[str] | None
) -> None:
    made = fallbacks(tmp_path, named)
    destination = await made.router.choose(chosen)
    found = await made.prepare(destination, Purpose.CHAT, "c")
    if chain is None:
        assert found is destination
        return
    asked = await made.chain_of(destination, Purpose.CHAT)
    assert [one.model_id for one in asked] == chain
    assert found.model_id == chain[0]
    assert found.recoveries


async def test_fallback_is_named_for_each_purpose(tmp_path: Path) -> None:
    made = fallbacks(tmp_path, [CLOUD])
    destination = await made.router.choose(FAR)
    assert await made.prepare(destination, Purpose.EDIT) is destination


async def test_fallback_begins_with_the_model_that_a_conversation_stays_with(
    tmp_path: Path,
) -> None:
    made = fallbacks(tmp_path, [CLOUD])
    destination = await made.router.choose(FAR)
    made.memory.keep((Purpose.CHAT, "c", FAR), CLOUD)
    found = await made.prepare(destination, Purpose.CHAT, "c")
    assert (found.upstream.name, found.model, found.model_id) == ("cloud", "c", CLOUD)
    other = await made.prepare(destination, Purpose.CHAT, "d")
    assert other.model_id == FAR
