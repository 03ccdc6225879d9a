"""From a client's model id to an upstream and a model."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from byok.core.chat import ChatRequest
from byok.core.errors import MODEL_NOT_FOUND, BadRequest
from byok.core.routing import ListedModel
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.demo import RefusingUpstream
from byok.upstream.router import NO_ALIASES, PLACEHOLDER, Router
from tests.fakes.scripted import Lister


class House:
    """Two upstreams with their catalog and router."""

    def __init__(
        self,
        folder: Path,
        default: str = "",
        aliases: Mapping[str, str] = NO_ALIASES,
        local: tuple[str, ...] = (),
        second: tuple[str, ...] = ("m2",),
        **first: str,
    ) -> None:
        self.first, self.second = Lister("one", "m1"), Lister("two", "m2", "m3")
        self.catalog = Catalog(
            [
                CatalogEntry(self.first, model=first.get("model", "")),
                CatalogEntry(self.second, models=second),
            ],
            folder / "models.json",
        )
        upstreams = {"one": self.first, "two": self.second}
        self.router = Router(upstreams, self.catalog, default, aliases, local)

    async def choose(self, model_id: str) -> tuple[str, str]:
        choice = await self.router.choose(model_id)
        assert isinstance(choice, Destination)
        return choice.upstream.name, choice.model


@pytest.mark.parametrize(
    ("model_id", "choice"),
    [
        pytest.param("byok:two:m2", ("two", "m2"), id="listed"),
        pytest.param("byok:two:qwen:7b/x", ("two", "qwen:7b/x"), id="with a colon"),
        pytest.param("byok:two:m ü", ("two", "m ü"), id="verbatim"),
        pytest.param("m2", ("one", "top"), id="a bare name, though listed"),
        pytest.param("two:qwen:7b", ("two", "qwen:7b"), id="as lists show it"),
        pytest.param("byok:byok:m1", ("byok", "m1"), id="of byok itself"),
        pytest.param("byok:three:m1", ("three", "m1"), id="unknown upstream"),
        pytest.param("byok:two:a\r\nX: y", ("one", "top"), id="control characters"),
        pytest.param("http://evil/x", ("one", "top"), id="an address"),
    ],
)
async def test_router_routes_a_model_id(
    tmp_path: Path, model_id: str, choice: tuple[str, str]
) -> None:
    house = House(tmp_path, model="top")
    assert await house.choose(model_id) == choice
    assert house.first.asked + house.second.asked == 0


@pytest.mark.parametrize("way", ["choose", "choose_listed"])
async def test_router_refuses_a_model_of_an_unconfigured_upstream(
    tmp_path: Path, way: str
) -> None:
    house = House(tmp_path, model="top")
    choice = await getattr(house.router, way)("byok:three:m1")
    with pytest.raises(BadRequest, match="'three', which is not configured") as stream:
        await anext(ask(choice, ChatRequest(())))
    with pytest.raises(BadRequest) as forwarded:
        async with choice.upstream.forward("chat/completions", b"{}"):
            pass
    for refusal in (stream.value, forwarded.value):
        assert refusal.code == MODEL_NOT_FOUND
        assert "[upstreams.three]" in refusal.hint
    assert house.first.asked + house.second.asked == 0


async def test_router_chooses_the_closest_model_for_a_name_of_its_family(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.upstream.router")
    models = ("claude-opus-4-5", "claude-sonnet-4-5")
    house = House(tmp_path, model="top", second=models)
    for _ in range(2):
        assert await house.choose("sonnet4.5") == ("two", "claude-sonnet-4-5")
    assert await house.choose("llama9") == ("one", "top")
    assert house.router.substitutes == {
        "sonnet4.5": "byok:two:claude-sonnet-4-5",
        "llama9": "byok:one:top",
    }
    logged = [r.getMessage() for r in caplog.records if "sonnet4.5" in r.getMessage()]
    assert len(logged) == 1
    assert "'sonnet4.5' = 'byok:two:claude-sonnet-4-5'" in logged[0]
    for local, upstream in (("one",), "one"), (("one", "two"), "two"):
        house = House(tmp_path, model="top", second=models, local=local)
        assert (await house.choose("sonnet4.5"))[0] == upstream
    mine = {"my-sonnet": "byok:one:tuned"}
    house = House(tmp_path, model="top", second=models, aliases=mine)
    assert await house.choose("my-sonnet") == ("one", "tuned")


async def test_router_reports_a_substituted_model(
    tmp_path: Path,
) -> None:
    house = House(tmp_path, model="top")
    for model_id in ("", "byok:two:m2", "top"):  # "top" is what answers
        await house.router.choose(model_id)
    assert house.router.substitutes == {}
    instead = await house.router.choose("claude-sonnet-4")
    assert instead.model_id == "byok:one:top"
    assert house.router.substitutes == {"claude-sonnet-4": "byok:one:top"}


@pytest.mark.parametrize(
    ("default", "model", "expected"),
    [
        pytest.param("byok:two:m9", "", ("two", "m9"), id="a whole id"),
        pytest.param("m2", "", ("two", "m2"), id="a listed name"),
        pytest.param("m9", "", ("one", "m9"), id="a name nobody lists"),
        pytest.param("byok:three:m", "", ("one", "byok:three:m"), id="of no upstream"),
        pytest.param("", "", ("one", PLACEHOLDER), id="nothing is known yet"),
    ],
)
async def test_router_finds_the_default_model(
    tmp_path: Path, default: str, model: str, expected: tuple[str, str]
) -> None:
    house = House(tmp_path, default, model=model)
    assert house.router.default() == ListedModel(*expected)


async def test_router_prefers_a_model_that_is_called_like_an_upstream_and_its_model(
    tmp_path: Path,
) -> None:
    house = House(tmp_path, model="top", second=("one:m1",))
    assert await house.choose("one:m1") != ("one", "m1")
    assert await house.choose("byok:one:m1") == ("one", "m1")


async def test_router_resolves_a_placeholder_model(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert await house.choose("") == ("one", "m1")
    assert await house.choose(f"byok:one:{PLACEHOLDER}") == ("one", "m1")
    assert house.first.asked == 1


async def test_router_invents_no_model_for_a_server_that_has_none(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    house.first.listed = []
    found = await house.router.choose("")
    assert isinstance(found.upstream, RefusingUpstream)
    house.first.listed = ["pulled"]
    house.catalog.refresh(anew=True)
    assert await house.choose("") == ("one", "pulled")


async def test_router_waits_for_model_lists_to_place_a_bare_default(
    tmp_path: Path,
) -> None:
    house = House(tmp_path, "m3")
    assert house.catalog["two"].names == ["m2"], "nothing was fetched yet"
    assert await house.choose("") == ("two", "m3")


ALIASES = {"fast": "byok:two:m3", "m1": "byok:two:m2"}


@pytest.mark.parametrize("way", ["choose", "choose_listed"])
@pytest.mark.parametrize(
    ("model_id", "choice"),
    [
        ("fast", ("two", "m3")),
        ("byok:fast", ("two", "m3")),
        ("m1", ("two", "m2")),
        ("byok:one:m1", ("one", "m1")),
        ("slow", ("two", "m3")),
    ],
)
async def test_router_resolves_an_alias(
    tmp_path: Path, way: str, model_id: str, choice: tuple[str, str]
) -> None:
    house = House(tmp_path, "fast", aliases=ALIASES)
    found = await getattr(house.router, way)(model_id)
    assert (found.upstream.name, found.model) == choice
    assert ("slow" in house.router.substitutes) is (model_id == "slow")


async def test_router_lists_aliases_before_the_models_they_stand_for(
    tmp_path: Path,
) -> None:
    house = House(tmp_path, aliases=ALIASES)
    assert [(m.id, m.upstream, m.model) for m in house.router.list_models()] == [
        ("byok:fast", "two", "m3"),
        ("byok:m1", "two", "m2"),
        ("byok:two:m2", "two", "m2"),
    ]
