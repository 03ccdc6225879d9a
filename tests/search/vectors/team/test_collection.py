"""What a collection is, what is asked of it, and what is believed of its answers."""

import hashlib
import math
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from byok.core.errors import ConfigError
from byok.search.vectors.team.collection import (
    TeamNames,
    check_score,
    check_vector,
    collection_name,
)
from byok.search.vectors.types import SpaceName
from tests.fakes.qdrant_members import SPACE, Team, embed, key
from tests.fakes.qdrant_server import QdrantServer

TEXTS = [f"text {number}" for number in range(400)]
KEYS = [key(text) for text in TEXTS]


async def use_everything(team: Team) -> None:
    writer = team.member(writes=True)
    await writer.offer(KEYS, embed(*TEXTS), repositories=["host/a"])
    await writer.offer(KEYS[:9], embed(*TEXTS[:9]), repositories=["host/b"])
    reader = team.member()
    assert len(await reader.fetch(KEYS)) == 400
    near = await reader.nearest(
        embed("q"), repositories=["host/a"], keys=KEYS, limit=10
    )
    assert len(near) == 10


async def test_a_collection_is_made_for_searches_within_repositories(
    server: QdrantServer, team: Team
) -> None:
    await use_everything(team)
    [(name, stored)] = server.collections.items()
    assert name.startswith("byok_platform_")
    assert stored.made == {
        "vectors": {
            "size": 8,
            "distance": "Cosine",
            "on_disk": True,
            "datatype": "float16",
        },
        "hnsw_config": {"m": 0, "payload_m": 16},
        "quantization_config": {
            "scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}
        },
        "on_disk_payload": True,
    }
    assert stored.indexes == {"repo": {"type": "keyword", "is_tenant": True}}


async def test_requests_are_bounded(server: QdrantServer, team: Team) -> None:
    """At most 256 ids to look at, and as many numbers as take 3 ms to read."""
    import orjson
    from msgspec.structs import replace

    wide = replace(SPACE, dimensions=1024)
    writer = team.member(writes=True, space=wide)
    rows = embed(*TEXTS, dimensions=1024)
    assert await writer.offer(KEYS, rows, repositories=["host/a"]) == 400
    assert len(await writer.fetch(KEYS)) == 400
    sent: list[dict[str, Any]] = [orjson.loads(b) for b in server.bodies if b]
    looks = [len(b["ids"]) for b in sent if b.get("with_vector") is False]
    reads = [len(b["ids"]) for b in sent if b.get("with_vector") is True]
    writes = [len(b["batch"]["ids"]) for b in sent if "batch" in b]
    assert (max(looks), max(reads), max(writes)) == (256, 24, 24)


async def test_writers_who_begin_together_make_one_collection(
    server: QdrantServer, team: Team
) -> None:
    """Both see no collection, and one is told that it exists."""
    first, second = team.member(writes=True), team.member(writes=True)
    hidden = 2  # answers that say there is none

    def touch(what: str, result: Any) -> Any:
        nonlocal hidden
        if what == "GET exists" and hidden:
            hidden -= 1
            return {"exists": False}
        return result

    assert await first.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=["a"]) == 3
    server.touch = touch
    assert await second.offer(KEYS[3:6], embed(*TEXTS[3:6]), repositories=["a"]) == 3
    assert hidden == 0
    assert (first.status.note, second.status.note) == ("", "")
    assert len(await first.fetch(KEYS)) == 6


UNIT = [0.6, 0.8, 0.0]


def test_a_good_vector_has_length_one() -> None:
    vector = check_vector([0.58, 0.8, 0.01], 3)
    assert vector is not None
    assert vector.dtype == np.float32
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "received",
    [
        None,
        "0.6,0.8,0",
        {"indices": [0], "values": [1.0]},
        [],
        [0.6, 0.8],
        [0.6, 0.8, 0.0, 0.0],
        [UNIT, UNIT, UNIT],
        ["0.6", "0.8", "0"],
        [0.6, 0.8, None],
        [0.0, 0.0, 0.0],
        [6e30, 8e30, 0.0],
        [1e308, 1e308, 1e308],
        [10**400, 0, 0],
        [math.nan, 0.6, 0.8],
        [math.inf, 0.0, 0.0],
        [-math.inf, math.inf, 0.0],
        [1e-30, 0.0, 0.0],
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_poisoned_vector_is_left_out(received: Any) -> None:
    assert check_vector(received, 3) is None


def test_scores_stay_within_those_of_cosines() -> None:
    scores = (0.5, 1, 7.0, -1e9, math.inf, 10**400)
    assert [check_score(score) for score in scores] == [0.5, 1, 1, -1, 1, 1]
    assert [check_score(score) for score in (math.nan, None, "1", [1])] == [None] * 4


NOMIC = SpaceName("nomic-embed-text", 768, "1", "search_document: ", "search_query: ")
SALT = "correct horse battery staple"


@pytest.mark.parametrize(
    "other",
    [
        replace(NOMIC, model="nomic-embed-code"),
        replace(NOMIC, dimensions=256),
        replace(NOMIC, recipe="2"),
        replace(NOMIC, document_prefix=""),
        replace(NOMIC, query_prefix=""),
        replace(NOMIC, recipe="1s", document_prefix="earch_document: "),
        replace(NOMIC, model="\ud800"),
    ],
)
def test_another_space_is_another_collection(other: SpaceName) -> None:
    assert collection_name("platform", other) != collection_name("platform", NOMIC)


def test_without_the_salt_a_known_text_is_not_found() -> None:
    key = hashlib.sha256(b"text").digest()
    name = TeamNames(SALT).point(key)
    assert name != key[:16]
    assert name != TeamNames(SALT + "!").point(key)


@pytest.mark.parametrize("salt", ["", "x" * 15])
def test_a_salt_that_could_be_guessed_is_refused(salt: str) -> None:
    with pytest.raises(ConfigError, match="fewer than 16") as caught:
        TeamNames(salt)
    assert "openssl" in caught.value.hint
