"""What members of a team get from each other, whatever server keeps it."""

import numpy as np

from tests.fakes.qdrant_members import Team, embed, key

TEXTS = [f"def function_{number}(): ..." for number in range(600)]
KEYS = [key(text) for text in TEXTS]
HERE = ["host/owner/here"]


async def test_what_one_member_gives_another_gets(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    reader = any_team.member()
    vectors = embed(*TEXTS)
    assert await writer.offer(KEYS, vectors, repositories=HERE) == 600
    got = await reader.fetch([*KEYS, key("unknown")])
    assert got.keys() == {*KEYS}
    cosines = [float(np.dot(got[k], row)) for k, row in zip(KEYS, vectors, strict=True)]
    assert min(cosines) > 0.9999
    assert all(row.dtype == np.float32 and row.shape == (8,) for row in got.values())
    assert (writer.status.pushed, reader.status.fetched) == (600, 600)
    assert (writer.status.note, reader.status.note) == ("", "")


async def test_what_the_team_has_is_not_overwritten(any_team: Team) -> None:
    first, second = any_team.member(writes=True), any_team.member(writes=True)
    await first.offer(KEYS[:1], embed("one"), repositories=HERE)
    await second.offer(KEYS[:1], embed("other"), repositories=["host/b"])
    got = await any_team.member().fetch(KEYS[:1])
    assert float(np.dot(got[KEYS[0]], embed("one")[0])) > 0.999


async def test_the_nearest_of_a_repository(any_team: Team) -> None:
    writer, reader = any_team.member(writes=True), any_team.member()
    there = ["host/owner/there"]
    await writer.offer(KEYS[:40], embed(*TEXTS[:40]), repositories=HERE)
    await writer.offer(KEYS[30:60], embed(*TEXTS[30:60]), repositories=there)
    await reader.fetch(KEYS[:1])
    question = embed("where are functions?")
    cosines = (embed(*TEXTS[30:60]) @ question[0]).tolist()
    pairs = zip(cosines, KEYS[30:60], strict=True)
    expected = {name: cosine for cosine, name in sorted(pairs, reverse=True)[:5]}
    got = await reader.nearest(question, repositories=there, keys=KEYS, limit=5)
    assert got.keys() == expected.keys()
    assert all(abs(got[name] - expected[name]) < 0.002 for name in got)
    both = [*there, *HERE, ""]
    found = await reader.nearest(question, repositories=both, keys=KEYS, limit=100)
    assert found.keys() == {*KEYS[:60]}
    # What this member does not have is left out, and nobody else's is shown.
    few = KEYS[35:37]
    found = await reader.nearest(question, repositories=there, keys=few, limit=100)
    assert found.keys() == {*few}
    other = await reader.nearest(question, repositories=["x"], keys=KEYS, limit=9)
    assert other == {}


async def test_a_reader_creates_and_writes_nothing(any_team: Team) -> None:
    reader = any_team.member()
    assert await reader.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE) == 0
    assert await reader.fetch(KEYS[:3]) == {}
    assert "No writer has filled" in reader.status.note
    writer = any_team.member(writes=True)
    await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE)
    assert await reader.offer(KEYS[3:6], embed(*TEXTS[3:6]), repositories=HERE) == 0
    assert (await writer.fetch(KEYS[:6])).keys() == {*KEYS[:3]}


async def test_another_model_behind_the_same_name_is_refused(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE)
    for writes in (False, True):
        other = any_team.member(writes=writes, model="replaced")
        assert await other.fetch(KEYS[:3]) == {}
        rows = embed(*TEXTS[3:6], model="replaced")
        assert await other.offer(KEYS[3:6], rows, repositories=HERE) == 0
        assert "another model" in other.status.note
    assert (await writer.fetch(KEYS[:6])).keys() == {*KEYS[:3]}


async def test_another_salt_is_refused(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    await writer.offer(KEYS[:3], embed(*TEXTS[:3]), repositories=HERE)
    other = any_team.member(writes=True, salt="the salt of another team")
    assert await other.fetch(KEYS[:3]) == {}
    assert "another salt" in other.status.note


async def test_a_text_of_many_repositories_lists_some_of_them(any_team: Team) -> None:
    writer = any_team.member(writes=True)
    names = [f"host/{number}" for number in range(70)]
    for name in names:
        await writer.offer(KEYS[:1], embed(TEXTS[0]), repositories=[name])
    question = embed(TEXTS[0])
    for name, has in ((names[0], True), (names[63], True), (names[64], False)):
        got = await writer.nearest(
            question, repositories=[name], keys=KEYS[:1], limit=1
        )
        assert bool(got) is has
    assert writer.status.note == ""
