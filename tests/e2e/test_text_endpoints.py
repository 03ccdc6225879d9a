"""The endpoints that ask for one text: whole, fenced, broken, left, and hostile."""

import asyncio
import hashlib
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from byok.server.http.deadlines import Timing
from tests.fakes.bodies import EDIT, TEXT_BODIES, TEXT_FIELDS, exchange
from tests.fakes.cases import case_param
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import check_error, connected, filled, request
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
    refusal,
    tool_answer,
)

REPLACING = ("/instruction-stream", "/smart-paste-stream")
BROKE = event({"error": {"message": "broke"}})
RESTLESS = Timing(
    beat=0.02, head_after=0.01, late_head_after=0.01, grace=0.1, last_words=0.2
)


async def ask(editor: Editor, path: str, **body: Any) -> Any:
    return await editor.post(path, {**TEXT_BODIES[path], **body})


async def read_broken(editor: Editor, path: str, body: Any) -> bytes:
    """Return what came of an answer whose connection ends in its middle."""
    got = b""
    with pytest.raises(aiohttp.ClientError):
        async with editor.stream(path, body) as response:
            async for line in response.content:
                got += line
    return got


async def test_text_streams_send_the_first_words_before_the_last(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(Script([delta(content="one = 2;")], end="hang"))
    async with (
        asyncio.timeout(PATIENCE),
        editor.stream("/instruction-stream", EDIT) as response,
    ):
        lines = [await response.content.readline() for _ in "12"]
    assert json.loads(lines[0])["replacement_start_line"] == 2
    assert json.loads(lines[1])["replacement_text"] == "one = 2;"


@pytest.mark.parametrize("path", ["/edit", "/generate-conversation-title", *REPLACING])
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script([BROKE]), id="an error"),
        pytest.param(Script([b"no"], 500), id="a status"),
        pytest.param(answer(" \n"), id="nothing said"),
    ],
)
async def test_a_failure_before_any_text_is_a_lasting_error(
    fake: FakeUpstream, editor: Editor, path: str, script: Script | list[bytes]
) -> None:
    fake.play(script)
    reply = await ask(editor, path)
    assert reply.status == 422
    check_error(reply.json)


@pytest.mark.parametrize("script", [[delta(content="x"), BROKE], [BROKE]])
async def test_text_endpoint_failure_leaves_a_file_unchanged(
    fake: FakeUpstream, editor: Editor, script: list[bytes]
) -> None:
    fake.play(Script(script))
    found = (await ask(editor, "/agents/edit-file")).json
    assert (found["modified_file_contents"], found["is_error"]) == ("old\n", True)
    assert found["error_message"]


async def test_an_edit_that_breaks_off_is_an_error_and_no_half_text(
    fake: FakeUpstream, editor: Editor
) -> None:
    for script in (
        [delta(content="half"), BROKE],
        answer("half", finish="length"),
        [delta(content="half")],
    ):
        fake.play(Script(script))
        reply = await ask(editor, "/edit")
        assert reply.status == 422
        assert b"half" not in reply.raw


@pytest.mark.parametrize("path", REPLACING)
@pytest.mark.parametrize(
    "script",
    [[delta(content="half = 1;"), 0.1, BROKE], [delta(content="half = 1;"), 0.1]],
)
async def test_text_replacement_that_breaks_off_is_no_whole_one(
    fake: FakeUpstream, editor: Editor, path: str, script: list[bytes | float]
) -> None:
    fake.play(Script(script))
    got = await read_broken(editor, path, TEXT_BODIES[path])
    assert (await editor.chat()).status == 200
    last = json.loads(got.splitlines()[-1])
    assert last["text"] == ""
    assert set(last["error"]) == {"code", "message", "request_id"}


SILENT = {
    "/chat-stream": {"message": "Summarise.", "silent": True},
    "/chat": {"message": "Summarise.", "silent": True},
    "/prompt-enhancer": TEXT_BODIES["/prompt-enhancer"],
    "/generate-commit-message-stream": TEXT_BODIES["/generate-commit-message-stream"],
}
FAILURES = {
    "a wrong key": (Script([b"no"], 401), "upstream_auth"),
    "a lasting limit": (refusal(429, "No.", {"Retry-After": "7200"}), "rate_limit"),
    "an error": (Script([BROKE]), "upstream_failed"),
    "an error in the answer": (
        Script([delta(content="half"), 0.01, BROKE]),
        "upstream_failed",
    ),
    "a cut": (Script([delta(content="half")]), "upstream_cut"),
    "a lost connection": (Script([delta(content="half")], end="reset"), "upstream_cut"),
    "too long": (Script(answer("half", finish="length")), "upstream_cut"),
    "filtered": (Script(answer("half", finish="content_filter")), "upstream_cut"),
    "only thoughts": (
        Script([delta(reasoning_content="half"), delta(finish="stop"), DONE]),
        "upstream_empty",
    ),
    "a call": (Script(tool_answer("view", "{}")), "upstream_cut"),
}


async def test_background_jobs_that_fail_are_errors_and_never_text(
    fake: FakeUpstream, editor: Editor
) -> None:
    wrong: list[str] = []
    for (name, (script, code)), (path, body) in product(
        FAILURES.items(), SILENT.items()
    ):
        fake.play(script)
        reply = await editor.post(path, body)
        if not (
            reply.status in (402, 422, 429, 503)
            and code in reply.json["error"]["code"]
            and b"half" not in reply.raw
        ):
            wrong.append(f"{name}, {path}: {reply.status} {reply.raw!r}")
    assert not wrong


async def test_background_jobs_send_their_whole_answer_and_no_call(
    fake: FakeUpstream, editor: Editor
) -> None:
    call = tool_answer("view", "{}")[0]
    fake.play([delta(reasoning_content="Hm."), *answer("All ", "of it.")[:2], call,
               delta(finish="stop"), DONE])  # fmt: skip
    for path, body in SILENT.items():
        reply = await editor.post(path, body)
        assert (reply.status, reply.text) == (200, "All of it.")
        assert (reply.last["stop_reason"], reply.tool_uses) == (1, [])
        assert "error" not in reply.last


async def test_background_job_that_is_cut_is_asked_again_or_elsewhere(
    fake: FakeUpstream,
) -> None:
    cut = Script([delta(content="half")], end="reset")
    settings: dict[str, Any] = {
        "upstreams": {
            "fake": {"base_url": fake.url, "patience": 0},
            "other": {"base_url": fake.url, "patience": 0},
        },
        "routing": {
            "default": "byok:fake:a",
            "fallback": {"small": ["byok:other:b"]},
        },
    }
    async with running(settings) as editor:
        for path, body in SILENT.items():
            fake.requests.clear()
            fake.reply = lambda sent: (
                cut if sent["model"] == "a" else Script(answer("All."))
            )
            reply = await editor.post(path, body)
            assert (reply.status, reply.text) == (200, "All.")
            assert [sent["model"] for sent in fake.requests][-1] == "b"


async def test_background_job_waits_without_a_byte_for_the_end(
    fake: FakeUpstream,
) -> None:
    late = Timing(beat=0.01, head_after=0.01, grace=0.1, last_words=0.2)
    fake.play(Script([0.1, delta(content="half"), 0.1, BROKE]))
    async with running(settings_for(fake.url), timing=late) as editor:
        for path, body in SILENT.items():
            reply = await editor.post(path, body)
            assert reply.status == 422, path
            check_error(reply.json)


async def test_background_job_that_fails_after_the_head_has_no_end(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="half"), 0.1, BROKE]))
    async with running(settings_for(fake.url), timing=RESTLESS) as editor:
        for path, body in SILENT.items():
            if path == "/chat":
                continue  # one object, whose status waits for it
            got = await read_broken(editor, path, body)
            said = "".join(json.loads(line)["text"] for line in got.splitlines())
            assert said == ("mine" if path == "/prompt-enhancer" else "")
            assert json.loads(got.splitlines()[-1])["error"]["code"]


@pytest.mark.parametrize("path", ["/completion", "/chat-input-completion"])
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script([BROKE]), id="an error"),
        pytest.param(Script([delta(content="x"), BROKE]), id="an error later"),
        pytest.param(Script([b"no"], 401), id="a status"),
        pytest.param(Script([b"<html>"]), id="a page"),
        pytest.param(answer(" \n"), id="nothing said"),
    ],
)
async def test_completion_that_fails_has_no_items(
    fake: FakeUpstream, editor: Editor, path: str, script: Script | list[bytes]
) -> None:
    fake.play(script)
    reply = await ask(editor, path)
    assert (reply.status, reply.json["completion_items"]) == (200, [])


async def test_next_edit_that_nobody_waits_for_is_empty(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(answer("NONE"))
    reply = await ask(editor, "/next-edit-stream")
    assert (reply.status, reply.raw) == (200, b"")
    fake.play(Script([b"no"], 500))
    places = await ask(editor, "/next_edit_loc")
    assert (places.status, places.json["candidate_locations"]) == (200, [])


async def test_instruction_lines_of_a_cut_file_are_counted_in_the_upload(
    fake: FakeUpstream, editor: Editor
) -> None:
    file = "".join(f"line {n}\n" for n in range(1, 9))
    name = hashlib.sha256(b"a.py" + file.encode()).hexdigest()
    blob = {"blob_name": name, "path": "a.py", "content": file}
    part = {"prefix": "line 5\r\n", "selected_text": "line 6\r\n", "suffix": ""}
    body = {**EDIT, **part, "prefix_begin": 28, "blob_name": name}
    unknown = await editor.post("/instruction-stream", body)
    await editor.post("/batch-upload", {"blobs": [blob]})
    known = await editor.post("/instruction-stream", body)
    assert unknown.status == 422
    assert unknown.json["error"]["code"] == "file_start_unknown"
    assert known.lines[0]["replacement_start_line"] == 6
    assert known.lines[0]["replacement_old_text"] == "line 6\r\n"


async def test_demo_writes_nothing_into_the_users_code() -> None:
    async with running(upstream="demo") as editor:
        for path in ("/edit", *REPLACING):
            reply = await editor.post(path, TEXT_BODIES[path])
            assert (reply.status, reply.json["error"]["code"]) == (422, "not_served")
        path = "/agents/edit-file"
        changed = (await editor.post(path, TEXT_BODIES[path])).json
    assert changed["modified_file_contents"] == "old\n"
    assert changed["is_error"] is True


async def test_heartbeats_are_sent_where_the_shape_has_room(fake: FakeUpstream) -> None:
    fake.play(Script([0.2, *answer("EDIT: x\nnew")]))
    async with running(settings_for(fake.url), timing=RESTLESS) as editor:
        changed = await editor.post("/instruction-stream", EDIT)
        edits = await editor.post("/next-edit-stream", EDIT)
    assert changed.lines[0] == {"text": ""}
    places = [line for line in changed.lines if "replacement_start_line" in line]
    assert len(places) == 1
    assert [list(line)[-1] for line in edits.lines] == ["next_edit"]


async def test_text_stream_failure_after_the_head_is_a_last_line(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([0.1, BROKE]))
    async with running(settings_for(fake.url), timing=RESTLESS) as editor:
        changed = await editor.post("/instruction-stream", EDIT)
        edits = await editor.post("/next-edit-stream", EDIT)
    assert changed.status == 200
    assert "error" in changed.last
    assert not any("replacement_text" in line for line in changed.lines)
    assert (edits.status, edits.raw) == (200, b"")


@pytest.mark.parametrize("path", TEXT_BODIES)
async def test_text_endpoint_disconnect_releases_the_upstream(
    fake: FakeUpstream, path: str
) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    async with (
        running(settings_for(fake.url)) as editor,
        connected(editor.daemon.port) as client,
    ):
        raw = request(target=path.encode(), body=json.dumps(TEXT_BODIES[path]).encode())
        await client.send(filled(raw, editor.daemon.port, editor.token))
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        client.abort()
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


@pytest.mark.parametrize(
    "odd",
    [
        case_param(None, id="B85-null"),
        case_param("x", id="B85-text"),
        case_param("", id="B85-empty"),
        case_param(2**70, id="B45-number"),
        case_param(-1, id="B45-negative"),
        case_param(["x", None, {"x": 1}], id="B45-list"),
        case_param({"x": [1]}, id="B45-object"),
        case_param("\ud800'; DROP TABLE x;--\x00", id="B49-hostile"),
    ],
)
async def test_text_endpoints_accept_any_json_in_all_fields(
    fake: FakeUpstream, editor: Editor, odd: Any
) -> None:
    fake.play(answer("EDIT: x\n1"))
    for path in TEXT_BODIES:
        await check(editor, path, dict.fromkeys(TEXT_FIELDS.split(), odd))


async def check(editor: Editor, path: str, body: dict[str, Any]) -> None:
    reply = await editor.post(path, body)
    assert reply.status in (200, 422), reply.raw
    if reply.status == 422:
        check_error(reply.json)
        assert reply.json["error"]["code"] in ("bad_field", "file_start_unknown")


# Whole answers, byte for byte as in tests/golden: --update-golden writes them anew.

GOLDEN = Path(__file__).parents[1] / "golden"
SELECTION = {
    "instruction": "rename",
    "prefix": 'G = "🚢"\r\n\r\n',
    "selected_text": "def fare(kind):\r\n",
    "suffix": "    return 1\r\n",
    "path": "fares.py",
}
CODE = ("```py", "thon\ndef fee(ki", "nd):\n```")
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "/prompt-enhancer": ({"message": "faster"}, ("\nMake fares", " faster.\n")),
    "/generate-commit-message-stream": (
        {"diff": "diff --git a/x b/x\n+y\n"},
        ("```\nx: add", " y\n```"),
    ),
    "/generate-conversation-title": (
        {"chat_history": [exchange("Why is the ferry late?", "Fog.")]},
        ('"Ferry delays', ' in fog."'),
    ),
    "/edit": (SELECTION, CODE),
    "/instruction-stream": (SELECTION, CODE),
    "/smart-paste-stream": (
        {"code_block": "b = 2", "target_file_content": "a = 1\n"},
        ("```\na = 1\n", "b = 2\n```"),
    ),
    "/agents/edit-file": (
        {"file_contents": "a = 1\n", "edit_summary": "b"},
        ("a = 1\nb", " = 2"),
    ),
    "/next-edit-stream": (SELECTION, ("EDIT: rename it\n", "def fee(kind):\n")),
    "/completion": (
        {"prompt": "def fare(kind):\r\n    ", "suffix": "\r\n", "path": "fares.py"},
        ("```python\n    return", " 1\n    # all pay\n```"),
    ),
    "/chat-input-completion": (
        {"prompt": "Why is the fer"},
        ("Why is the ferry", " late?\nBecause"),
    ),
    "/next_edit_loc": (
        {"diagnostics": [{"location": {"path": "a.py", "line_start": 3}}]},
        ("1",),
    ),
}


@pytest.mark.parametrize("path", CASES)
async def test_golden_answer_is_unchanged(
    path: str, fake: FakeUpstream, editor: Editor, request: pytest.FixtureRequest
) -> None:
    body, said = CASES[path]
    fake.play([b"".join(answer(*said))])  # one read, so that lines are always cut alike
    reply = await editor.post(path, body)
    assert reply.status == 200
    raw = re.sub(rb"[0-9a-f]{16}(?=-1\")", b"REQUEST", reply.raw)
    file = GOLDEN / path.strip("/") / "whole.ndjson"
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
    assert raw == file.read_bytes()
