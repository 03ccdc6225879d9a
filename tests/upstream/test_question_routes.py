"""byok's own questions go to this machine, or where chats go, and nowhere else."""

import asyncio
from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.core.record import RequestRecord, begin_record
from byok.core.routing import Purpose
from byok.upstream.base import Destination
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.fallback import FallbackMemory, Fallbacks
from byok.upstream.own_questions import QuestionRoutes
from byok.upstream.router import Router
from tests.fakes.clock import Clock
from tests.fakes.scripted import Lister

NEAR, LAN, FAR, CLOUD = "byok:near:n", "byok:lan:l", "byok:far:f", "byok:cloud:c"
ALIASES = {"best": CLOUD}


def routes(
    folder: Path, default: str, chat: str | None, behind: list[str]
) -> QuestionRoutes:
    """Two upstreams on this machine, and two elsewhere."""
    upstreams = {
        name: Lister(name, f"{name}-listed") for name in ("near", "lan", "far", "cloud")
    }
    catalog = Catalog(map(CatalogEntry, upstreams.values()), folder / "models.json")
    catalog.refresh()
    router = Router(upstreams, catalog, default, ALIASES)
    local = {"near", "lan"}
    lists = {Purpose.CHAT: behind, Purpose.SUMMARY: [CLOUD]}
    fallbacks = Fallbacks(
        router, lambda purpose: lists.get(purpose, []), local, FallbackMemory(Clock())
    )
    return QuestionRoutes(fallbacks, chat)


@pytest.mark.case("B126")
@pytest.mark.parametrize(
    ("default", "chat", "behind", "wanted", "found"),
    [
        pytest.param(NEAR, "", [], FAR, None, id="chats stay here"),
        pytest.param(NEAR, "", [], "cloud-listed", None, id="nor does a listed name"),
        pytest.param(NEAR, "", [], LAN, LAN, id="another one here"),
        pytest.param(NEAR, "", [], "", NEAR, id="the one of chats, here"),
        pytest.param(NEAR, "", [FAR], FAR, None, id="a fallback that a chat lacks"),
        pytest.param(NEAR, "", [NEAR, FAR], FAR, FAR, id="a fallback of chats"),
        pytest.param(NEAR, "", [NEAR, FAR], CLOUD, None, id="not one of summaries"),
        pytest.param(NEAR, FAR, [], "byok:far:tiny", "byok:far:tiny", id="chat is set"),
        pytest.param(FAR, NEAR, [], FAR, None, id="the default is not for chats"),
        pytest.param(FAR, "", [], CLOUD, None, id="another place"),
        pytest.param(FAR, "", [CLOUD], CLOUD, CLOUD, id="the place of the fallback"),
        pytest.param(FAR, "", [], NEAR, NEAR, id="chats go out, and this one does not"),
        pytest.param(FAR, "best", [], "", CLOUD, id="the one that chats name"),
        pytest.param(FAR, None, [], FAR, None, id="the official service answers chats"),
        pytest.param(FAR, None, [FAR, CLOUD], "", None, id="it has no fallback"),
    ],
)
async def test_question_goes_only_where_chats_go_or_nowhere(
    tmp_path: Path,
    default: str,
    chat: str | None,
    behind: list[str],
    wanted: str,
    found: str | None,
) -> None:
    made = routes(tmp_path, default, chat, behind)
    await made.fallbacks.router.choose_listed("cloud-listed")  # waits for the lists
    if found is None:
        with pytest.raises(ConfigError, match="no chat goes to"):
            await made.find(wanted)
    else:
        assert (await made.find(wanted)).model_id == found


@pytest.mark.case("B126")
@pytest.mark.parametrize(
    ("default", "seen", "wanted", "found"),
    [
        pytest.param(FAR, {"near"}, FAR, None, id="this window stays here"),
        pytest.param(NEAR, {"cloud"}, CLOUD, CLOUD, id="a model that a client chose"),
        pytest.param(FAR, {"cloud"}, FAR, None, id="one instead of the default"),
        pytest.param(FAR, {"near", "far"}, FAR, FAR, id="chats went to both"),
    ],
)
async def test_question_of_a_window_goes_only_where_its_chats_went(
    tmp_path: Path, default: str, seen: set[str], wanted: str, found: str | None
) -> None:
    made = routes(tmp_path, default, "", [])

    async def find() -> Destination:
        begin_record(RequestRecord(chat_upstreams=frozenset(seen)))
        return await made.find(wanted)

    asked = asyncio.ensure_future(find())  # the record is that of a task
    if found is None:
        with pytest.raises(ConfigError, match="no chat goes to"):
            await asked
    else:
        assert (await asked).model_id == found


@pytest.mark.case("B126")
async def test_question_has_no_fallback(tmp_path: Path) -> None:
    found = await routes(tmp_path, FAR, "", [FAR, CLOUD]).find("")
    assert isinstance(found.upstream, Lister)
