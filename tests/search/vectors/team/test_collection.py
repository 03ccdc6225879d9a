"""What is asked of the server, judged by Qdrant's own description of its API."""

from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient

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


@pytest.mark.shared
async def test_every_request_and_answer_is_as_the_openapi_file_says(
    shared: object, server: QdrantServer, team: Team
) -> None:
    assert server.contract is not None
    await use_everything(team)
    [name] = server.collections
    client = AsyncQdrantClient(url=server.url, check_compatibility=False)
    assert (await client.count(name)).count == 401
    assert (await client.get_collection(name)).points_count == 401
    await client.delete(name, points_selector=["00000000-0000-0000-0000-000000000001"])
    await client.delete_collection(name)
    await client.close()
    assert server.contract.violations == []
    place = "/collections/{collection_name}"
    assert server.contract.seen == {
        f"GET {place}/exists",
        f"PUT {place}",
        f"GET {place}",
        f"DELETE {place}",
        f"PUT {place}/index",
        f"PUT {place}/points",
        f"POST {place}/points",
        f"POST {place}/points/payload",
        f"POST {place}/points/query",
        f"POST {place}/points/count",
        f"POST {place}/points/delete",
    }


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


async def test_a_point_holds_a_vector_and_hashed_repositories(
    server: QdrantServer, team: Team
) -> None:
    await use_everything(team)
    [stored] = server.collections.values()
    probe = stored.points.pop("00000000-0000-0000-0000-000000000001")
    assert probe[1].keys() == {"check"}
    for vector, payload in stored.points.values():
        assert len(vector) == SPACE.dimensions
        assert payload.keys() == {"repo"}
        assert all(len(bytes.fromhex(name)) == 16 for name in payload["repo"])
    assert sorted(len(p["repo"]) for _, p in stored.points.values())[-10:] == [
        1,
        *[2] * 9,
    ]


async def test_requests_are_bounded(server: QdrantServer, team: Team) -> None:
    """At most 256 ids to look at, and as many numbers as take 3 ms to read."""
    from dataclasses import replace

    import orjson

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
