"""The models that add to code search are those of the settings in force."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.search.retrieval import rerank
from byok.search.retrieval.rerank import ModelRerank
from byok.settings import Settings
from byok.settings.keys import KeyLadder
from byok.wiring.services import Services, open_services
from tests.fakes.engines import project
from tests.fakes.patience import PATIENCE, until
from tests.fakes.upstream import FakeUpstream, Script, answer

RERANK = {"rerank": "model"}


@pytest.fixture
async def fake() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as made:
        made.reply = first_of_list
        yield made


def first_of_list(body: dict[str, Any]) -> Script:
    """Answer as a model that knows which animal is meant."""
    rows = body["messages"][-1]["content"].split("\n\n", 1)[1].splitlines()
    wanted = [f"zoo_{n}.py" for n in (19, 0, 3)]
    numbers = {row.split(" ")[1]: row.split(" ")[0] for row in rows}
    return Script(answer(" ".join(numbers[name] for name in wanted)))


def settings_of(fake: FakeUpstream, **sections: Any) -> Settings:
    upstreams = {
        "box": {"base_url": fake.url, "model": "big"},
        "far": {"base_url": "https://far.example/v1", "model": "f"},
    }
    return Settings(upstreams=upstreams, **sections)


async def ordered(services: Services, question: str) -> list[str]:
    found = await services.context.search(question, 20, [])
    return [Path(hit["path"]).name for hit in found["hits"]]


def zoo(root: Path) -> Path:
    """Twenty files, of which each says a little less of lions."""
    return project(
        root, **{f"zoo_{n}__py": "lion\n" * (20 - n) + "bear\n" * n for n in range(20)}
    )


async def test_rerank_follows_the_settings_in_force(
    tmp_path: Path, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerank, "ModelRerank", partial(ModelRerank, seconds=PATIENCE))
    root = zoo(tmp_path / "zoo")
    off = settings_of(fake)
    on = settings_of(fake, retrieval=RERANK)
    named = settings_of(
        fake, retrieval=RERANK, routing={"models": {"rerank": "byok:box:tiny"}}
    )
    far = settings_of(
        fake, retrieval=RERANK, routing={"models": {"rerank": "byok:far:tiny"}}
    )
    async with open_services(
        off, find_paths(), ladder=KeyLadder(environ={}), roots=[root]
    ) as services:

        async def is_indexed() -> bool:
            return len(await ordered(services, "the lion")) == 20

        await until(is_indexed)
        plain = await ordered(services, "the lion")
        assert fake.requests == []

        await services.renew(on)
        for n in range(4):
            await ordered(services, f"lion question {n}")
        hits = (await services.context.search("the lion", 20, []))["hits"]
        names = [Path(hit["path"]).name for hit in hits]
        assert names[:2] == [plain[0], "zoo_19.py"]
        assert [hit["moved_from"] for hit in hits[1:3]] == [20, 4]
        assert "moved_from" not in hits[0]
        scores = [hit["score"] for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert {body["model"] for body in fake.requests} == {"big"}

        await services.renew(named)
        await ordered(services, "the lion")
        assert fake.requests[-1]["model"] == "tiny"

        asked = len(fake.requests)
        await services.renew(far)  # no chat goes there
        assert await ordered(services, "the lion") == plain

        again = await services.renew(off)
        assert await ordered(again, "the lion") == plain
        assert len(fake.requests) == asked
        assert again.context.aids.rerank is None


async def test_chats_wait_for_no_rerank(fake: FakeUpstream) -> None:
    """A chat's own code is looked up before its first word can come."""
    from byok.core.code_query import BlobNames, CodeQuestion, Upload

    on = settings_of(fake, retrieval=RERANK)
    async with open_services(
        on, find_paths(), ladder=KeyLadder(environ={})
    ) as services:
        context = services.context
        assert isinstance(context.aids.rerank, ModelRerank)
        names = await context.upload(
            [Upload(b"", f"zoo_{n}.py", b"lion %d" % n) for n in range(3)]
        )
        wanted = CodeQuestion("lion", BlobNames("", tuple(names)))

        async def is_indexed() -> bool:
            return bool((await context.passages(wanted, 5000)).text)

        await until(is_indexed)
        assert fake.requests == []


async def test_small_model_names_words_where_chats_go(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    fake.reply = lambda _: Script(answer("lion"))
    root = zoo(tmp_path / "zoo")
    small = settings_of(fake, routing={"models": {"small": "byok:box:tiny"}})
    far = settings_of(fake, routing={"models": {"small": "byok:far:tiny"}})
    async with open_services(
        settings_of(fake), find_paths(), ladder=KeyLadder(environ={}), roots=[root]
    ) as services:

        async def is_indexed() -> bool:
            return len(await ordered(services, "the lion")) == 20

        await until(is_indexed)
        await services.renew(small)
        await ordered(services, "the lion")
        assert fake.requests == []

        async def is_named() -> bool:
            return len(await ordered(services, "สิงโตอยู่ที่ไหน")) == 20

        await until(is_named)  # words that come late are kept for the next search
        assert await is_named()
        assert [body["model"] for body in fake.requests] == ["tiny"]

        await services.renew(far)  # no chat goes there
        assert await ordered(services, "สิงโตอยู่ที่ไหน") == []
        await services.renew(settings_of(fake))
        assert services.context.aids.words is None
        assert len(fake.requests) == 1
