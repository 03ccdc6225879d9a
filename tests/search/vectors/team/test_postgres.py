"""A team on a real PostgreSQL server: rights, faults, and what strangers put there."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from byok.core.errors import (
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.search.vectors.team.postgres import PostgresCollection, PostgresStore
from byok.upstream.transport import tls_context
from tests.fakes.asker import Key
from tests.fakes.patience import PATIENCE
from tests.fakes.postgres_server import PASSWORD
from tests.fakes.qdrant_members import Team, embed, key

PatientServer = partial(PostgresStore, seconds=PATIENCE)

pytest.importorskip("asyncpg", reason="asyncpg is not installed: scripts/setup test")

TEXTS = [f"text {number}" for number in range(9)]
KEYS = [key(text) for text in TEXTS]
NAMES = [bytes([n]) * 16 for n in range(9)]


@pytest.fixture
async def team(database: str) -> AsyncIterator[Team]:
    made = Team(database, PASSWORD)
    made.name = f"test-{secrets.token_hex(4)}"
    yield made
    await made.close()


@pytest.fixture
async def table(database: str, team: Team) -> AsyncIterator[PostgresCollection]:
    server = PatientServer(database, Key(PASSWORD), None, writes=True)
    made = server.collection(team.name, 8)
    await made.create()
    yield made
    await server.close()


async def test_writers_of_the_same_moment_lose_no_repository(
    table: PostgresCollection,
) -> None:
    await table.insert(NAMES[:1], embed("a"), ["r0"])
    await table.insert(NAMES[:1], embed("other"), ["r0"])
    assert float((await table.vectors(NAMES))[NAMES[0]] @ embed("a")[0]) > 0.999
    known = await table.repositories(NAMES[:2])
    assert known == {NAMES[0]: ["r0"]}
    await asyncio.gather(
        table.create(), *(table.add_repositories(known, [f"r{n}"]) for n in range(9))
    )
    [listed] = (await table.repositories(NAMES[:1])).values()
    assert sorted(listed) == [f"r{n}" for n in range(9)]
    await table.add_repositories({NAMES[0]: []}, ["r0"])  # known before it was there
    await table.add_repositories(known, [f"more{n}" for n in range(64)])
    assert await table.repositories(NAMES[:1]) == {NAMES[0]: listed}


async def test_the_session_of_a_reader_changes_nothing(
    database: str, table: PostgresCollection
) -> None:
    await table.insert(NAMES[:1], embed("a"), ["r"])
    server = PatientServer(database, Key(PASSWORD), None, writes=False)
    reader = server.collection(table.name, 8)
    assert [*await reader.vectors(NAMES)] == NAMES[:1]
    with pytest.raises(UpstreamRefused):
        await reader.insert(NAMES[1:2], embed("b"), ["r"])
    with pytest.raises(UpstreamRefused):
        await reader.add_repositories({NAMES[0]: ["r"]}, ["s"])
    await server.close()
    assert await table.repositories(NAMES) == {NAMES[0]: ["r"]}


@pytest.mark.case("B127")
async def test_planted_rows_change_nothing_but_the_order(
    table: PostgresCollection,
) -> None:
    zero, long = np.zeros((1, 8), np.float32), np.full((1, 8), 9.0, np.float32)
    await table.insert(NAMES[:1], zero, ["r"])
    await table.insert(NAMES[1:2], long, ["r"])
    await table.insert(NAMES[2:3], embed("a"), ["r"])
    await table.write_probe(zero, "check")
    assert [*await table.vectors(NAMES)] == NAMES[2:3]
    near = partial(table.nearest, embed("a"), limit=2, seconds=5)
    assert NAMES[0] not in await near(["r"])
    assert (await near(["r"]))[NAMES[2]] > 0.999
    assert await near(["r') OR true --", '"', "\\"]) == {}
    assert await table.read_probe() == (None, "check")


@pytest.mark.case("B127")
async def test_the_server_sees_no_text_and_no_name(database: str, team: Team) -> None:
    writer = team.member(writes=True)
    await writer.offer(KEYS, embed(*TEXTS), repositories=["git.example/owner/zoo"])
    server = PatientServer(database, Key(PASSWORD), None, writes=False)
    name = writer.status.collection
    rows = await server.fetch(f'SELECT t::text FROM "{name}" t', ())
    assert len(rows) == 10
    everything = "\n".join(row[0] for row in rows)
    for planted in ("text", "zoo", "git.example", KEYS[0].hex()):
        assert planted not in everything
    await server.close()


@pytest.mark.case("F49")
async def test_a_refused_password_is_looked_up_again_and_not_repeated(
    team: Team,
) -> None:
    password = Key("a-wrong-password")
    member = team.member(writes=True, api_key=password)
    assert await member.offer(KEYS[:1], embed("a"), repositories=["h/o/r"]) == 0
    assert member.status.note.startswith("It refuses the password")
    password.key = PASSWORD
    team.clock.now += 6
    assert await member.offer(KEYS[:1], embed("a"), repositories=["h/o/r"]) == 1


@pytest.mark.case("F49")
async def test_a_table_that_is_gone_is_made_again(database: str, team: Team) -> None:
    writer = team.member(writes=True)
    await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=["h/o/r"])
    server = PatientServer(database, Key(PASSWORD), None, writes=True)
    await server.fetch(f'DROP TABLE "{writer.status.collection}"', ())
    await server.close()
    assert await writer.fetch(KEYS) == {}
    assert writer.status.note
    team.clock.now += 6
    assert await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=["h/o/r"]) == 3
    assert writer.status.note == ""


async def answer_nonsense(reader: asyncio.StreamReader, writer: Any) -> None:
    await reader.read(8)
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n" * 9)
    writer.close()


@pytest.mark.case("F49")
@pytest.mark.parametrize("what", ["silent", "nonsense", "dead"])
async def test_a_server_that_is_none_is_an_error_in_time(what: str) -> None:
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        fake = None
        if what == "silent":
            port.listen()
        elif what == "nonsense":
            fake = await asyncio.start_server(answer_nonsense, sock=port.dup())
        url = f"postgresql://byok@127.0.0.1:{port.getsockname()[1]}/x"
        server = PostgresStore(url, Key(PASSWORD), None, writes=True, seconds=0.3)
        with pytest.raises(UpstreamError) as raised:
            await server.fetch("SELECT 1", ())
        assert isinstance(raised.value, UpstreamTimeout) == (what == "silent")
        assert PASSWORD not in raised.value.log_text
        await server.close()
        if fake:
            fake.close()
            await fake.wait_closed()


async def test_a_password_is_not_sent_without_tls_where_that_is_needed(
    database: str,
) -> None:
    password = Key(PASSWORD)
    tls = partial(tls_context, "")
    server = PostgresStore(database, password, tls, writes=True, seconds=5)
    with pytest.raises(UpstreamError):  # this server has no certificate
        await server.collection("x", 8).exists()
    await server.close()


async def test_rights_of_the_database_are_told(database: str) -> None:
    server = PatientServer(database, Key(PASSWORD), None, writes=True)
    await server.fetch("DROP ROLE IF EXISTS poor", ())
    await server.fetch(f"CREATE ROLE poor LOGIN PASSWORD '{PASSWORD}'", ())
    other = database.replace("byok@", "poor@")
    poor = PatientServer(other, Key(PASSWORD), None, writes=True)
    with pytest.raises(UpstreamRefused) as raised:
        await poor.collection("poor_table", 8).create()
    assert raised.value.kind is RefusalKind.AUTH
    for one in (server, poor):
        await one.close()
