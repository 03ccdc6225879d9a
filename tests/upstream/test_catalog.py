"""The lists of models: read at once, fetched behind, kept in a file."""

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from byok.core.errors import ByokError, KeyMissing, UpstreamUnreachable
from byok.core.routing import ListedModel, Purpose
from byok.dialects.model_facts import ModelFacts, Price
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.catalog import Catalog, CatalogEntry, find_answering, write_lists
from byok.upstream.http_sender import Sender
from byok.upstream.model_facts import KnownModels
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.clock import Clock
from tests.fakes.patience import PATIENCE
from tests.fakes.scripted import Canned, FakeTransports, Lister
from tests.fakes.upstream import FakeUpstream, dead_url


class Known(KnownModels):
    """What is known of models, without an upstream."""

    def __init__(self) -> None:
        api = Api(OpenAIChat(), "http://fake.test/v1")
        spec = UpstreamSpec("fake", (api,))
        super().__init__(Sender(spec, FakeTransports(), Key()), api)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "models.json"


async def refreshed(catalog: Catalog) -> None:
    catalog.refresh()
    await catalog.settle(PATIENCE)


async def test_catalog_refreshes_in_the_background_and_reading_never_waits(
    file: Path,
) -> None:
    lister = Lister("a", "m1", "m2")
    lister.open.clear()
    catalog = Catalog([CatalogEntry(lister)], file)
    catalog.refresh()
    assert catalog["a"].names == []
    await catalog.settle(0)
    lister.open.set()
    await catalog.settle(PATIENCE)
    assert catalog["a"].names == ["m1", "m2"]
    assert catalog.state_of("a").failure == ""


async def test_catalog_refreshes_only_an_old_model_list(file: Path) -> None:
    lister, clock = Lister("a", "m1"), Clock(0.0)
    catalog = Catalog([CatalogEntry(lister)], file, clock=clock)
    await refreshed(catalog)
    clock.now = 300.0
    await refreshed(catalog)
    assert lister.asked == 1
    clock.now = 300.1
    lister.listed = ["m2"]
    await refreshed(catalog)
    assert lister.asked == 2
    assert catalog["a"].names == ["m2"]


@pytest.mark.parametrize(
    "failure",
    [UpstreamUnreachable("a: silent.", hint="Start it."), KeyMissing("a: no key.")],
    ids=["unreachable", "no key"],
)
async def test_catalog_keeps_the_old_model_list_and_the_failure(
    file: Path, failure: ByokError, caplog: pytest.LogCaptureFixture
) -> None:
    lister, clock = Lister("a", "m1"), Clock(0.0)
    catalog = Catalog([CatalogEntry(lister)], file, clock=clock)
    await refreshed(catalog)
    clock.now, lister.failure = 1000.0, failure
    await refreshed(catalog)
    assert catalog.state_of("a").failure == failure.sentence
    assert failure.sentence in caplog.text
    assert catalog["a"].names == ["m1"]
    await refreshed(catalog)
    assert lister.asked == 2
    clock.now = 1700.0
    await refreshed(catalog)
    state = catalog.state_of("a")
    assert (lister.asked, state.failing, state.age) == (3, 700.0, 0.0)
    clock.now, lister.failure = 2400.0, None
    await refreshed(catalog)
    assert catalog.state_of("a").failure == ""


@pytest.mark.parametrize(
    ("failure", "asked"),
    [(None, 2), (UpstreamUnreachable("a: silent."), 2), (KeyMissing("a: no key."), 1)],
    ids=["empty", "unreachable", "no key"],
)
async def test_catalog_soon_sees_that_a_server_was_started_or_has_a_model(
    file: Path, failure: ByokError | None, asked: int
) -> None:
    lister, clock = Lister("a"), Clock(0.0)
    lister.failure = failure
    catalog = Catalog([CatalogEntry(lister)], file, clock=clock)
    await refreshed(catalog)
    await refreshed(catalog)
    assert lister.asked == 1
    clock.now, lister.failure, lister.listed = 3.0, None, ["m1"]
    await refreshed(catalog)
    assert lister.asked == asked
    assert catalog["a"].names == ["m1"][: asked - 1]
    clock.now = 303.0
    await refreshed(catalog)
    assert catalog["a"].names == ["m1"]


async def test_catalog_of_an_ollama_without_models_says_how_to_get_one(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await refreshed(Catalog([CatalogEntry(Lister("a"), vendor="ollama")], file))
    assert "ollama pull" in caplog.text


async def test_catalog_is_restored_from_its_file_after_a_restart(file: Path) -> None:
    lister = Lister("a", "m1")
    await refreshed(Catalog([CatalogEntry(lister)], file))
    assert file.stat().st_mode & 0o077 == 0
    lister.open.clear()
    again = Catalog([CatalogEntry(lister), CatalogEntry(Lister("b"))], file)
    assert again["a"].names == ["m1"]
    assert again["b"].names == []


@pytest.mark.parametrize(
    ("content", "models"),
    [
        pytest.param(b"", [], id="empty"),
        pytest.param(b'{"a": ["m1", 7, null]}', ["m1"], id="a list of other things"),
        pytest.param(b'{"a": [{"id": "m1", "window": "x"}, {}]}', ["m1"], id="facts"),
    ],
)
def test_catalog_ignores_a_damaged_file(
    file: Path, content: bytes, models: list[str]
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    catalog = Catalog([CatalogEntry(Lister("a"))], file)
    assert catalog["a"].names == models


async def test_catalog_reports_a_file_that_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    catalog = Catalog([CatalogEntry(Lister("a", "m1"))], blocked / "models.json")
    with caplog.at_level(logging.WARNING):
        await refreshed(catalog)
    assert catalog["a"].names == ["m1"]
    assert "cannot be kept" in caplog.text


@pytest.mark.parametrize(
    ("chosen", "by_hand", "found", "models", "default"),
    [
        pytest.param("", (), ("m1", "m2"), ["m1", "m2"], "m1", id="found"),
        pytest.param("", ("h",), ("m1",), ["h", "m1"], "h", id="by hand first"),
        pytest.param("m2", (), ("m1", "m2"), ["m2", "m1"], "m2", id="by choice"),
        pytest.param("bge-m3", (), ("m",), ["bge-m3", "m"], "bge-m3", id="even then"),
    ],
)
async def test_catalog_gives_the_models_and_the_default_of_an_upstream(
    file: Path,
    chosen: str,
    by_hand: tuple[str, ...],
    found: Any,
    models: list[str],
    default: str,
) -> None:
    catalog = Catalog([CatalogEntry(Lister("a", *found), by_hand, chosen)], file)
    await refreshed(catalog)
    assert catalog["a"].names == models
    assert catalog["a"].default == default
    assert catalog.list_models() == [ListedModel("a", model) for model in models]


def gpt(lister: Lister, **fields: Any) -> CatalogEntry:
    return CatalogEntry(lister, vendor="openai", **fields)


GPTS = ("whisper-1", "gpt-3.5-turbo", "gpt-4", "gpt-5.5", "gpt-5.4-mini", "gpt-5.5-pro")


async def test_the_default_is_a_good_model_and_not_the_first_of_the_list(
    file: Path,
) -> None:
    catalog = Catalog([gpt(Lister("a", *GPTS))], file)
    await refreshed(catalog)
    assert catalog["a"].default == "gpt-5.5"
    assert catalog["a"].names[:2] == ["gpt-5.5", "whisper-1"]
    models = [catalog["a"].model_for(p) for p in (Purpose.CHAT, Purpose.TITLE)]
    assert models == ["gpt-5.5", "gpt-5.4-mini"]
    assert catalog["a"].model_for(Purpose.SUMMARY) == "gpt-5.5"


async def test_a_vendor_without_a_list_has_a_good_model_of_the_table(
    file: Path,
) -> None:
    bad = Lister("a")
    bad.failure = UpstreamUnreachable("No.")
    catalog = Catalog([gpt(bad), CatalogEntry(Lister("b"))], file)
    await refreshed(catalog)
    assert catalog["a"].default == ""
    assert catalog["a"].presumed_default.startswith("gpt-")
    assert catalog["b"].presumed_default == ""


@pytest.mark.parametrize("given", [{"model": "mine"}, {"models": ("mine",)}], ids=str)
async def test_a_model_that_the_user_names_does_the_small_jobs_too(
    file: Path, given: dict[str, Any]
) -> None:
    catalog = Catalog([gpt(Lister("a", *GPTS), **given)], file)
    await refreshed(catalog)
    assert catalog["a"].model_for(Purpose.TITLE) == "mine"


async def test_facts_of_a_list_are_restored_with_it(file: Path) -> None:
    listed = ModelFacts("m1", window=9000, images=False, price=Price(1.0, 2.0))
    lister, known = Lister("a", "m1", "m2"), Known()
    known.set_listed([listed])
    await refreshed(Catalog([CatalogEntry(lister, known=known)], file))
    rows = json.loads(file.read_bytes())["a"]
    assert [row if isinstance(row, str) else row["id"] for row in rows] == ["m1", "m2"]
    again = Known()
    Catalog([CatalogEntry(lister, known=again)], file)
    assert again.facts("m1") == listed
    fresh = Known()
    fresh.set_listed([ModelFacts("m1", window=8000)])
    Catalog([CatalogEntry(lister, known=fresh)], file)
    assert fresh.facts("m1").window == 8000


async def test_catalog_keeps_model_lists_by_address(tmp_path: Path) -> None:
    file = tmp_path / "models.json"

    def entry(address: str, *models: str) -> CatalogEntry:
        return CatalogEntry(Lister("custom", *models), address=address)

    await refreshed(Catalog([entry("http://a/v1", "m1")], file))
    assert Catalog([entry("http://b/v1")], file).list_models() == []
    await refreshed(Catalog([entry("http://b/v1", "m2")], file))
    again = Catalog([entry("http://a/v1")], file)
    assert again["custom"].names == ["m1"]


# The file of model lists: what one process wrote, another one reads
def test_only_the_last_fifty_lists_are_kept(file: Path) -> None:
    for names in (range(40), range(40, 60)):
        write_lists(file, {f"u{name}": [ModelFacts("m")] for name in names})
    assert len(json.loads(file.read_bytes())) == 50


def api(url: str) -> Api:
    return Api(OpenAIChat(), url)


async def test_discover_names_servers_that_answer_in_order(fake: FakeUpstream) -> None:
    transports = Transports()
    async with FakeUpstream() as other:
        urls = {"b": other.url, "dead": dead_url(), "a": fake.url}
        candidates = {name: api(url) for name, url in urls.items()}
        assert await find_answering(transports, candidates, seconds=PATIENCE) == [
            "b",
            "a",
        ]
        await transports.close()


async def test_discover_leaves_out_a_slow_server(fake: FakeUpstream) -> None:
    transports = Transports()
    fake.models_delay = 60
    assert await find_answering(transports, {"slow": api(fake.url)}, seconds=0.05) == []
    await transports.close()


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        pytest.param(200, b'{"data": []}', True, id="an object"),
        pytest.param(200, b"<html>", False, id="a web page"),
        pytest.param(302, b"{}", False, id="a redirect"),
        pytest.param(404, b"{}", False, id="an error"),
    ],
)
async def test_discover_counts_only_a_list_of_models(
    status: int, body: bytes, found: bool
) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(status, content=body)

    names = await find_answering(Canned(answer), {"x": api("http://127.0.0.1:1/v1")})
    assert names == (["x"] if found else [])
    assert asked == ["http://127.0.0.1:1/v1/models"]
