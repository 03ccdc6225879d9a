"""Uploads, checkpoints and questions over HTTP: limits, losses, and odd input."""

import asyncio
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clients import MISSING, blob, find_code, until_indexed, upload
from tests.fakes.daemon import Editor, running
from tests.fakes.engines import written
from tests.fakes.patience import PATIENCE
from tests.fakes.program import configure, serving
from tests.fakes.raw import check_error
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

needs_rg = pytest.mark.skipif(not shutil.which("rg"), reason="rg is not installed")


LION = blob("src/lion.py", "def feed_lion():\n    return 'meat'\n")
BEAR = blob("src/bear.py", "def feed_bear():\n    return 'honey'\n")


async def missing(editor: Editor, *names: Any) -> Any:
    reply = await editor.post("/find-missing", {"mem_object_names": list(names)})
    assert reply.status == 200
    return reply.json


async def retrieve(editor: Editor, query: Any, **blobs: Any) -> Any:
    """Ask until nothing is being indexed any more: a loaded machine takes its time."""
    body = {"information_request": query, "blobs": blobs}
    async with asyncio.timeout(PATIENCE):
        while True:
            reply = await editor.post("/agents/codebase-retrieval", body)
            assert reply.status == 200
            if "being indexed" not in reply.json["formatted_retrieval"]:
                return reply.json


async def test_upload_is_searchable_before_the_client_asks_again(
    editor: Editor,
) -> None:
    names = await upload(editor, LION, BEAR)
    assert names == [LION["blob_name"], BEAR["blob_name"]]
    answer = await missing(editor, *names, MISSING)
    assert answer["unknown_memory_names"] == [MISSING]
    found = await retrieve(editor, "feed_lion", added_blobs=names)
    assert "def feed_lion" in found["formatted_retrieval"]


async def test_retrieval_without_a_workspace_is_a_sentence(editor: Editor) -> None:
    reply = await editor.post("/agents/codebase-retrieval", {"query": "Lion?"})
    assert (await missing(editor))["unknown_blob_names"] == []
    assert "no code to search yet" in reply.json["formatted_retrieval"]
    assert reply.json["checkpoint_not_found"] is False


async def test_checkpoint_that_is_unknown_is_reported(editor: Editor) -> None:
    found = await retrieve(editor, "Lion?", checkpoint_id="lost")
    blobs = {"blobs": {"checkpoint_id": "lost", "added_blobs": [MISSING]}}
    refused = await editor.post("/checkpoint-blobs", blobs)
    assert found["checkpoint_not_found"] is True
    assert (
        "The checkpoint that this client named is unknown"
        in (found["formatted_retrieval"])
    )
    assert refused.status == 404
    check_error(refused.json)
    assert refused.json["error"]["code"] == "checkpoint_not_found"


@pytest.mark.case("B92")
async def test_checkpoints_are_the_same_for_the_same_names(editor: Editor) -> None:
    names = await upload(editor, LION, BEAR)

    async def checkpoint(base: Any, added: Any, deleted: Any) -> str:
        changes = {
            "checkpoint_id": base, "added_blobs": added, "deleted_blobs": deleted
        }  # fmt: skip
        reply = await editor.post("/checkpoint-blobs", {"blobs": changes})
        assert reply.status == 200
        made: str = reply.json["new_checkpoint_id"]
        return made

    both = await checkpoint(None, names, [])
    assert await checkpoint(None, names[::-1], [MISSING]) == both
    assert await checkpoint(both, names, []) == both
    one = await checkpoint(both, [], names[1:])
    assert one != both
    assert await checkpoint(None, names, names[1:]) == one
    assert await checkpoint(None, [], []) == await checkpoint(None, [], names)
    found = await retrieve(editor, "feed", checkpoint_id=one)
    assert "lion.py" in found["formatted_retrieval"]
    assert "bear.py" not in found["formatted_retrieval"]


@pytest.mark.case("B91")
async def test_find_missing_looks_up_2000_names_and_not_one_more(
    editor: Editor,
) -> None:
    names = [f"{n:064x}" for n in range(2001)]
    answer = await missing(editor, *names[:2000], *names[:5], 7, None)
    assert answer["unknown_memory_names"] == names[:2000]
    refused = await editor.post("/find-missing", {"blob_names": names})
    assert refused.status == 422
    check_error(refused.json)


async def test_1000_blobs_are_taken_and_not_one_more(editor: Editor) -> None:
    blobs = [blob(f"{n}.txt", "") for n in range(1001)]
    assert len(await upload(editor, *blobs[:1000])) == 1000
    refused = await editor.post("/batch-upload", {"blobs": blobs})
    assert refused.status == 422
    check_error(refused.json)


ODD: list[Any] = [None, 5, "x", [], {}, [1], [None], [[]], {"a": 1}, True]


def odd_bodies(value: Any) -> dict[str, list[Any]]:
    """Return bodies with a value wherever one may stand, by endpoint."""
    return {
        "/find-missing": [{"mem_object_names": value, "blob_names": value}],
        "/batch-upload": [
            {"blobs": value},
            {"blobs": [{"blob_name": value, "path": value, "content": value}]},
            {"blobs": [{"path": "a", "content": value}]},
        ],
        "/checkpoint-blobs": [
            {"blobs": value},
            {"blobs": {"added_blobs": value, "deleted_blobs": value}},
        ],
        "/agents/codebase-retrieval": [
            {"information_request": value, "blobs": value, "dialog": value},
            {"query": "x", "max_output_length": value, "blobs": {"added_blobs": value}},
        ],
        "/byok/search": [{"query": value, "limit": value}],
        "/byok/index/status": [{"x": value}],
    }


async def test_upload_bodies_of_odd_types_never_break_anything(editor: Editor) -> None:
    for value in ODD:
        for path, given in odd_bodies(value).items():
            for body in given:
                assert (await editor.post(path, body)).status == 200, (path, body)
        for path in ("/byok/index/add", "/byok/index/remove", "/byok/index/why"):
            reply = await editor.post(path, {"root": value, "path": value})
            assert 400 <= reply.status < 500
            check_error(reply.json)


@pytest.mark.case("B64")
async def test_upload_under_a_wrong_name_is_an_alias(editor: Editor) -> None:
    wrong = {**LION, "blob_name": "f" * 64}
    assert await upload(editor, wrong, BEAR) == ["f" * 64, BEAR["blob_name"]]
    await until_indexed(editor, ["f" * 64, BEAR["blob_name"]])
    answer = await missing(editor, "f" * 64, LION["blob_name"], BEAR["blob_name"])
    assert not any(answer.values())
    found = await retrieve(editor, "feed_lion", added_blobs=["f" * 64])
    assert "def feed_lion" in found["formatted_retrieval"]


@pytest.mark.case("B65")
async def test_upload_of_two_files_with_one_name_keeps_the_first(
    editor: Editor,
) -> None:
    first, second = blob("src/a", ".py code"), blob("src/a.py", " code")
    assert first["blob_name"] == second["blob_name"]
    assert await upload(editor, first, second) == [first["blob_name"]] * 2
    found = await retrieve(editor, "code", added_blobs=[first["blob_name"]])
    assert "Path: src/a\n" in found["formatted_retrieval"]


PATHS = (
    *("/etc/passwd", "..\\..\\x", "C:\\x", "C:x", "\\\\srv\\s", "a/../../b", "a\0b"),
    *("x" * 5000, "CON", "dot."),
)


@pytest.mark.case("B66")
async def test_upload_path_is_only_a_text(editor: Editor, tmp_path: Path) -> None:
    before = {*tmp_path.rglob("*"), *Path.cwd().glob("*")}
    sent = [blob(path, "def zebra(): pass\n") for path in PATHS]
    names = await upload(editor, *sent)
    assert names == [one["blob_name"] for one in sent]
    for path, name in zip(PATHS, names, strict=True):
        found = await retrieve(editor, "zebra", added_blobs=[name])
        text = found["formatted_retrieval"]
        assert "\0" not in text
        # No file can have a name that long: there is nothing to search in it.
        assert ("def zebra" in text) == (len(path) < 5000), path
    after = {*tmp_path.rglob("*"), *Path.cwd().glob("*")}
    assert {p for p in after - before if "home" not in p.parts} == set()


NO_HASHES = ("a" * 63, "A" * 64, "../x", "a/b", "a\0b", "a" * 64 + "\n", "٣" * 64)


@pytest.mark.case("B63")
async def test_blob_name_that_is_no_hash_is_requested_and_known_again(
    editor: Editor,
) -> None:
    for name in NO_HASHES:
        assert (await missing(editor, name))["unknown_blob_names"] == [name]
        assert await upload(editor, {**LION, "blob_name": name}) == [name]
        assert (await missing(editor, name))["unknown_blob_names"] == []


async def test_upload_of_secrets_is_not_kept(editor: Editor) -> None:
    secret = blob("config/.env", "LION_PASSWORD=1")
    names = await upload(editor, secret)
    assert not any((await missing(editor, *names)).values())
    found = await retrieve(editor, "LION_PASSWORD", added_blobs=names)
    assert (await editor.post("/byok/index/status")).json["totals"]["bytes_held"] == 0
    assert "LION_PASSWORD=1" not in found["formatted_retrieval"]


QUERIES = {
    "B47": ['"', 'a" OR "', "NEAR(", "*", "-x", "{a b}:x", "hello AND", "a:b^2~"],
    "B48": ["a\0b", "   ", "北岸的渡轮", "x" * 100_000, "😀" * 64],
    "B49": ["'; DROP TABLE blob;--", "x' OR pg_sleep(8)--"],
    "B50": ["--pre=./x.sh", "--files", "-f/etc/passwd", "--hostname-bin=x"],
    "B51": ["\n", "a\nfeed_lion", "\r", "a\rb"],
}


@pytest.mark.case("B47", "B48", "B49", "B50", "B51")
@pytest.mark.parametrize("mode", ["index", pytest.param("ripgrep", marks=needs_rg)])
async def test_retrieval_of_odd_questions(tmp_path: Path, mode: str) -> None:
    marker = tmp_path / "marker"
    root = written(
        tmp_path / "p",
        {"a.py": "feed_lion = 1\n", "x.sh": f"#!/bin/sh\ntouch {marker}\n"},
    )
    (root / "x.sh").chmod(0o755)
    context = {"workspaces": [str(root)]}
    settings = {"context": context, "retrieval": {"mode": mode}}
    async with running(settings, upstream="demo") as editor:
        for query in [query for some in QUERIES.values() for query in some]:
            text = await find_code(editor, query)
            assert text
            for word in ("SQL", "syntax", "root:", "Traceback", "usage"):
                assert word not in text
            hits = await editor.post("/byok/search", {"query": query})
            assert hits.status == 200
        name = {"blob_name": "x' OR 1=1--", "path": "'; DROP", "content": "x"}
        assert await upload(editor, name) == ["x' OR 1=1--"]
    assert not marker.exists()


async def facts_of(editor: Editor, path: str, **blobs: Any) -> list[Any]:
    body = {"message": "Hello.", "blobs": blobs}
    reply = await editor.post(path, body)
    assert reply.status == 200
    lines = [reply.json] if path == "/chat" else reply.lines
    return [
        (line["unknown_blob_names"], line["checkpoint_not_found"]) for line in lines
    ]


async def test_a_chat_tells_once_what_is_unknown_of_its_blobs(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(answer("One ", "two ", "three."))
    [name] = await upload(editor, LION)
    both = {"added_blobs": [name, MISSING]}
    first, *others = await facts_of(editor, "/chat-stream", **both)
    assert first == ([MISSING], False)
    assert others
    assert all(facts == ([], False) for facts in others)
    assert await facts_of(editor, "/chat", **both) == [([MISSING], False)]


async def test_chat_that_fails_reports_a_lost_checkpoint_too(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(Script([b"data: nonsense\n\n"]))
    first, *others = await facts_of(
        editor, "/chat-stream", added_blobs=[MISSING], checkpoint_id="lost"
    )
    assert first == ([MISSING], True)
    assert all(facts == ([], False) for facts in others)
    fake.play(Script([delta(content="One")]))
    first, *others = await facts_of(editor, "/chat-stream", added_blobs=[MISSING])
    assert first == ([MISSING], False)
    assert all(facts == ([], False) for facts in others)
    silent = await editor.post("/chat-stream", {"blobs": {"added_blobs": [MISSING]}})
    assert silent.lines[0]["unknown_blob_names"] == [MISSING]
    assert sum(bool(line["unknown_blob_names"]) for line in silent.lines) == 1


@pytest.mark.case("B52", "B53")
@needs_rg
async def test_daemon_process_indexes_answers_and_stops_in_time(
    tmp_path: Path, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    script = f"#!/bin/sh\ntouch {marker}\n"
    files = {f"p{n % 20}/m{n}.py": f"def work_{n}(): pass\n" for n in range(700)}
    root = written(tmp_path / "p", {**files, "rg": script, "pre.sh": script})
    for name in ("rg", "pre.sh"):
        (root / name).chmod(0o755)
    (tmp_path / "rgrc").write_text(f"--pre={root}/pre.sh\n")
    configure(
        tmp_path / "program",
        fake.url,
        f"[context]\nworkspaces = [{json.dumps(str(root))}]\n",
    )
    monkeypatch.setenv("PATH", f".:{root}:{os.environ['PATH']}")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rgrc"))
    path, asked = "/agents/codebase-retrieval", {"information_request": "work_699"}
    async with serving(tmp_path / "program") as program:
        first = await program.post(path, **asked)  # by ripgrep
        assert "def work_699" in first.json["formatted_retrieval"]
        code, _, _ = await program.ended(signal.SIGTERM)  # in the middle of indexing
        assert code == 0
        program.check_log()
    async with serving(tmp_path / "program") as program:
        await program.until_complete()
        second = await program.post(path, **asked)
        assert "def work_699" in second.json["formatted_retrieval"][:400]
        code, _, _ = await program.ended(signal.SIGTERM)
        assert code == 0
        program.check_log()
    assert not marker.exists()
