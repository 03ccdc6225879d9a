"""Uploads, checkpoints and questions over HTTP: limits, losses, and odd input."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clients import MISSING, blob, find_code, indexed, upload
from tests.fakes.daemon import Editor, running
from tests.fakes.engines import until, written
from tests.fakes.patience import START
from tests.fakes.program import configure, serving
from tests.fakes.raw import check_error
from tests.fakes.upstream import FakeUpstream, Script, delta

needs_rg = pytest.mark.skipif(not shutil.which("rg"), reason="rg is not installed")


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


async def test_upload_bodies_of_odd_types_never_break_anything() -> None:
    async with running(upstream="demo") as editor:
        for value in ODD:
            for path, given in odd_bodies(value).items():
                for body in given:
                    assert (await editor.post(path, body)).status == 200, (path, body)
            for path in ("/byok/index/add", "/byok/index/remove", "/byok/index/why"):
                reply = await editor.post(path, {"root": value, "path": value})
                assert 400 <= reply.status < 500
                check_error(reply.json)


PATHS = (
    *("/etc/passwd", "..\\..\\x", "C:\\x", "C:x", "\\\\srv\\s", "a/../../b", "a\0b"),
    *("x" * 5000, "CON", "dot."),
)


@pytest.mark.case("B66")
async def test_upload_path_is_only_a_text(tmp_path: Path) -> None:
    async with running(upstream="demo") as editor:
        before = {*tmp_path.rglob("*"), *Path.cwd().glob("*")}
        sent = [blob(path, "def zebra(): pass\n") for path in PATHS]
        names = await indexed(editor, *sent)
        assert names == [one["blob_name"] for one in sent]
        for path, name in zip(PATHS, names, strict=True):
            text = await find_code(editor, "zebra", blobs={"added_blobs": [name]})
            assert "\0" not in text
            # No file can have a name that long: there is nothing to search in it.
            assert ("def zebra" in text) == (len(path) < 5000), path
        after = {*tmp_path.rglob("*"), *Path.cwd().glob("*")}
    assert {p for p in after - before if "home" not in p.parts} == set()


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
    target, asked = "/agents/codebase-retrieval", {"information_request": "work_699"}
    async with serving(tmp_path / "program") as program:
        first = await program.post(target, **asked)  # by ripgrep
        assert "def work_699" in first.json["formatted_retrieval"]
        code, _, _ = await program.ended(signal.SIGTERM)  # in the middle of indexing
        assert code == 0
        program.check_log()
    async with serving(tmp_path / "program") as program:

        async def is_indexed() -> bool:
            told = await program.post("/byok/index/status")
            return bool(told.json["state"] == "indexed")

        await until(is_indexed, START)
        second = await program.post(target, **asked)
        assert "def work_699" in second.json["formatted_retrieval"][:400]
        code, _, _ = await program.ended(signal.SIGTERM)
        assert code == 0
        program.check_log()
    assert not marker.exists()
