"""A server that is down, slow, refuses or lies costs a note, never a question."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.search.vectors.team.collection import PROBE, TeamNames, to_uuid
from byok.search.vectors.team.team_index import TeamIndex
from tests.fakes.asker import Key
from tests.fakes.qdrant_members import SALT, SPACE, Team, embed, key
from tests.fakes.qdrant_server import Fault, QdrantServer, answer, cut
from tests.fakes.scripted import CannedTransport
from tests.fakes.values import OBJECTS, VALUES

TEXTS = [f"text {number}" for number in range(5)]
KEYS = [key(text) for text in TEXTS]
HERE = ["host/owner/here"]
OK = b'{"time":0,"status":"ok","result":%s}'


async def fill(team: Team) -> None:
    writer = team.member(writes=True)
    assert await writer.offer(KEYS, embed(*TEXTS), repositories=HERE) == 5


async def ask_all(member: TeamIndex) -> None:
    """Ask for everything; the pause in between is over each time."""
    assert await member.fetch(KEYS) == {}
    assert await member.nearest(embed("q"), repositories=HERE, keys=KEYS, limit=5) == {}
    assert await member.offer(KEYS, embed(*TEXTS), repositories=HERE) == 0


FAULTS: list[tuple[str, Fault, str]] = [
    ("401", answer(status=401), "API key"),
    ("404", answer(status=404), "status 404"),
    ("429", answer(status=429, Retry_After="soon"), "status 429"),
    ("500", answer(b"<html>", status=500, content_type="text/html"), "status 500"),
    ("307", answer(status=307, Location="/elsewhere"), "redirects"),
    ("cut", cut, "lost"),
    ("empty", answer(), "not what it should be"),
    ("nested", answer(b"[" * 200_000), "not what it should be"),
    ("no result", answer(OK % b"null"), "not what it should be"),
    ("a list", answer(OK % b"[1,2]"), "not what it should be"),
    ("gzip", answer(b"\x1f\x8b", Content_Encoding="gzip"), "compressed"),
]


@pytest.mark.case("F49")
@pytest.mark.parametrize(
    ("fault", "note"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS]
)
@pytest.mark.parametrize("entered", [False, True], ids=["first", "later"])
async def test_a_fault_is_a_note(
    server: QdrantServer,
    team: Team,
    fault: Fault,
    note: str,
    entered: bool,
) -> None:
    await fill(team)
    member = team.member(writes=entered)
    if entered:
        assert len(await member.fetch(KEYS)) == 5
    server.fault = fault
    assert await member.fetch(KEYS) == {}
    assert note in member.status.note
    assert member.status.next_try == 5
    calls = len(server.calls)
    await ask_all(member)
    assert len(server.calls) == calls  # it is left alone
    team.clock.now += 5
    await ask_all(member)
    assert len(server.calls) > calls
    server.fault = None
    team.clock.now += 700
    assert len(await member.fetch(KEYS)) == 5
    assert (member.status.note, member.status.next_try) == ("", 0)


async def test_a_refused_key_is_looked_up_again(
    server: QdrantServer, team: Team
) -> None:
    await fill(team)
    server.keys = {"new-key": "r"}
    source = Key("old-key")
    member = team.member(api_key=source)
    assert await member.fetch(KEYS) == {}
    assert source.forgotten == 1
    source.key = "new-key"
    team.clock.now += 5
    assert len(await member.fetch(KEYS)) == 5


@pytest.mark.parametrize("secret", ["api_key", "salt"])
async def test_without_a_key_that_is_needed_nobody_is_asked(
    server: QdrantServer, team: Team, secret: str
) -> None:
    keys: dict[str, Any] = {secret: Key("missing")}
    member = team.member(**keys)
    await ask_all(member)
    assert member.status.note == "No key."
    assert server.calls == []


@pytest.mark.case("F49")
async def test_a_collection_of_other_dimensions(
    server: QdrantServer, team: Team
) -> None:
    """Somebody made the collection by hand, with another size."""
    await fill(team)
    [stored] = server.collections.values()
    stored.made["vectors"]["size"] = 4
    stored.points = {i: (v[:4], p) for i, (v, p) in stored.points.items()}
    for writes in (False, True):
        member = team.member(writes=writes)
        await ask_all(member)
        assert "another model" in member.status.note
    stored.points.clear()
    member = team.member(writes=True)
    await ask_all(member)
    assert "status 400" in member.status.note


async def test_a_collection_that_was_removed_is_created_by_a_writer(
    server: QdrantServer, team: Team
) -> None:
    await fill(team)
    reader, writer = team.member(), team.member(writes=True)
    assert len(await reader.fetch(KEYS)) == len(await writer.fetch(KEYS)) == 5
    server.collections.clear()
    assert await reader.fetch(KEYS) == await writer.fetch(KEYS) == {}
    assert "status 404" in reader.status.note
    team.clock.now += 5
    assert await reader.fetch(KEYS) == {}
    assert "No writer" in reader.status.note
    assert await writer.offer(KEYS, embed(*TEXTS), repositories=HERE) == 5
    team.clock.now += 10
    assert len(await reader.fetch(KEYS)) == 5


async def test_a_vector_in_another_direction_has_length_one(
    server: QdrantServer, team: Team
) -> None:
    """The most that a writer can do: change the order of an answer."""
    await fill(team)
    [stored] = server.collections.values()
    for point, (_, payload) in stored.points.items():
        stored.points[point] = ([1.0, *[0.0] * 7], payload)
    stored.points[to_uuid(PROBE)][0][:] = embed("probe")[0].tolist()
    got = await team.member().fetch(KEYS)
    assert {tuple(row.tolist()) for row in got.values()} == {(1.0, *[0.0] * 7)}


def unknown(result: Any) -> Any:
    """Return records and points that nobody asked for, some of them malformed."""
    strange: list[Any] = [7, "11111111-1111-1111-1111-111111111111", "", "é"]
    if isinstance(result, dict):
        more = [{"id": i, "version": 1, "score": 9e9} for i in strange]
        return {"points": [*more, *result["points"]]}
    return [*({"id": i, "vector": [0.5] * 8} for i in strange), *result]


def doubled(result: Any) -> Any:
    if isinstance(result, dict):
        return {"points": result["points"] * 1000}
    return result * 1000


@pytest.mark.case("B127")
@pytest.mark.parametrize("lie", [unknown, doubled])
async def test_ids_that_nobody_asked_for_are_ignored(
    server: QdrantServer, team: Team, lie: Callable[[Any], Any]
) -> None:
    await fill(team)
    member = team.member()
    await member.fetch(KEYS[:1])
    server.touch = lambda what, result: (
        lie(result) if what in ("POST points", "POST query") else result
    )
    got = await member.fetch(KEYS)
    assert got.keys() <= {*KEYS}
    near = await member.nearest(embed("q"), repositories=HERE, keys=KEYS, limit=9)
    assert near.keys() <= {*KEYS}
    assert all(-1 <= score <= 1 for score in near.values())
    assert member.status.note == ""


@pytest.mark.case("F49")
async def test_an_endless_answer_is_cut(server: QdrantServer, team: Team) -> None:
    await fill(team)
    member = team.member()
    await member.fetch(KEYS[:1])
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(64):
            await response.write(b" " * 2**20)
            sent += 1
        return response

    server.fault = flood
    assert await member.fetch(KEYS) == {}
    assert "larger than" in member.status.note
    assert sent < 32  # the rest was in the sockets' buffers


@pytest.mark.case("B127")
async def test_the_name_of_the_space_is_all_that_is_sent_of_it(
    server: QdrantServer, team: Team
) -> None:
    """No text, path, repository or secret is in what a team sends."""
    server.keys = {"the-key-of-the-server": "rw"}
    secret = "a salt that nobody else may know"
    for writes in (True, False):
        member = team.member(
            writes=writes, api_key="the-key-of-the-server", salt=secret
        )
        await member.offer(KEYS, embed(*TEXTS), repositories=HERE)
        await member.fetch(KEYS)
        await member.nearest(embed("q"), repositories=HERE, keys=KEYS, limit=5)
    sent = b"\n".join([*server.bodies, *(c.encode() for c in server.calls)])
    planted = [*TEXTS, "here", "owner", SPACE.model, "the-key-of-the-server", secret]
    for text in planted:
        assert text.encode() not in sent
    for name in KEYS:
        assert name.hex()[:16].encode() not in sent
    for headers in server.headers:
        assert headers["api-key"] == "the-key-of-the-server"
        assert secret not in str(headers)
        assert headers["accept-encoding"] == "identity"
        assert headers["user-agent"].startswith("byok/")


POINTS = st.lists(
    st.fixed_dictionaries(
        {"id": VALUES | st.integers(0, 9), "version": VALUES, "score": VALUES},
        optional={"vector": VALUES, "payload": VALUES | OBJECTS},
    ),
    max_size=3,
)
ANSWERS = VALUES | POINTS | st.fixed_dictionaries({"points": POINTS | VALUES})


@pytest.mark.slow
@pytest.mark.case("F49")
@given(result=ANSWERS, whole=st.booleans(), writes=st.booleans())
@settings(deadline=None, max_examples=50)
def test_no_answer_at_all_is_more_than_a_note(
    result: Any, whole: bool, writes: bool
) -> None:
    """Any JSON for each answer, from the first request on or after the probe."""
    body = json.dumps(result if whole else {"result": result, "status": "ok"})

    async def ask() -> None:
        team = Team("http://127.0.0.1:1")
        good, canned = True, httpx.Response(200, content=body.encode())
        probe = {"id": to_uuid(PROBE), "vector": embed("probe")[0].tolist()}
        check = {"check": TeamNames(SALT).check}

        def reply(request: httpx.Request) -> httpx.Response:
            if not good:
                return canned
            exists = request.url.path.endswith("exists")
            value = {"exists": True} if exists else [{**probe, "payload": check}]
            return httpx.Response(200, json={"result": value, "status": "ok"})

        member = team.member(writes=writes, transport=CannedTransport(reply))
        for _ in range(2):
            await member.fetch(KEYS)
            await member.nearest(embed("q"), repositories=HERE, keys=KEYS, limit=5)
            await member.offer(KEYS, embed(*TEXTS), repositories=HERE)
            good = False
            team.clock.now += 700
        await team.close()

    asyncio.run(ask())
